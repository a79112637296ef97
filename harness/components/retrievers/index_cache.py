"""A one-entry cache for a value built from objects, for repeated calls with the same objects."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Latest(Generic[T]):
    """Caches the last value built, so that queries timed one by one do not each rebuild an index.

    Objects are compared by identity, and are kept alive so that their ids cannot be reused.
    """

    def __init__(self) -> None:
        self._slot: tuple[tuple[object, ...], Hashable, T] | None = None

    def get(self, objects: tuple[object, ...], settings: Hashable, make: Callable[[], T]) -> T:
        """Return the cached value for these objects and settings, or call `make` and cache its result."""
        slot = self._slot
        if slot and slot[1] == settings and list(map(id, slot[0])) == list(map(id, objects)):
            return slot[2]
        self._slot = None  # release the old value before building the new one
        made = make()
        self._slot = objects, settings, made
        return made
