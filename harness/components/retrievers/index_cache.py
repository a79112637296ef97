"""Something made of objects once, for calls that come again with the very same ones."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Latest(Generic[T]):
    """Remembers the last thing made: queries that are timed one by one must not each build an index anew.

    Objects are told apart by identity, and held on to, so that no other can take their place.
    """

    def __init__(self) -> None:
        self._slot: tuple[tuple[object, ...], Hashable, T] | None = None

    def get(self, objects: tuple[object, ...], settings: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives for these objects and settings."""
        slot = self._slot
        if slot and slot[1] == settings and list(map(id, slot[0])) == list(map(id, objects)):
            return slot[2]
        self._slot = None  # the old one goes before the new one is made
        made = make()
        self._slot = objects, settings, made
        return made
