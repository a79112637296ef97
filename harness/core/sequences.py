"""Sequences whose items are made when they are read, so that none of them need be in memory."""

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain
from typing import TypeVar, overload

import numpy as np
import numpy.typing as npt

Item = TypeVar("Item")


class Lazy(Sequence[Item]):
    """A sequence that makes its items by number each time that they are read; a slice of it is a list."""

    @abstractmethod
    def _item(self, number: int) -> Item:
        """The item of a number, counted from 0, that exists."""

    def _items(self, numbers: range) -> Iterator[Item]:
        """The items of numbers that exist, for a class that makes several faster than one after another."""
        return map(self._item, numbers)

    @overload
    def __getitem__(self, at: int) -> Item: ...

    @overload
    def __getitem__(self, at: slice) -> list[Item]: ...

    def __getitem__(self, at: int | slice) -> Item | list[Item]:
        count = len(self)
        if isinstance(at, slice):
            return list(self._items(range(*at.indices(count))))
        if not -count <= at < count:
            raise IndexError(at)
        return self._item(at % count)

    def __iter__(self) -> Iterator[Item]:
        return self._items(range(len(self)))


class Made(Lazy[Item]):
    """`count` items, each made by a function of its number."""

    def __init__(self, count: int, make: Callable[[int], Item]) -> None:
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    def _item(self, number: int) -> Item:
        return self._make(number)


def chosen(items: Sequence[Item], numbers: npt.NDArray[np.int64]) -> Sequence[Item]:
    """The items of these numbers.

    >>> list(chosen("abcd", np.array([2, 0])))
    ['c', 'a']
    """
    return Made(len(numbers), lambda at: items[int(numbers[at])])


class Joined(Lazy[Item]):
    """The items of several sequences, one sequence after another."""

    def __init__(self, parts: Sequence[Sequence[Item]]) -> None:
        self._parts = parts
        self._starts = [0, *accumulate(map(len, parts))]

    def __len__(self) -> int:
        return self._starts[-1]

    def _item(self, number: int) -> Item:
        part = bisect_right(self._starts, number) - 1
        return self._parts[part][number - self._starts[part]]

    def __iter__(self) -> Iterator[Item]:
        return chain.from_iterable(self._parts)


def blocks(items: Sequence[Item], size: int) -> Iterator[list[Item]]:
    """Lists of `size` consecutive items; the last may have fewer."""
    block: list[Item] = []
    for item in items:
        block.append(item)
        if len(block) == size:
            yield block
            block = []
    if block:
        yield block
