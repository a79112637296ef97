"""Sequences whose items are made when they are read, so that none of them need be in memory."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain
from typing import TypeVar, overload

import numpy as np
import numpy.typing as npt

Item = TypeVar("Item")


class Made(Sequence[Item]):
    """`count` items, made by number each time that they are read."""

    def __init__(self, count: int, make: Callable[[int], Item]) -> None:
        self._count, self._make = count, make

    @overload
    def __getitem__(self, at: int) -> Item: ...

    @overload
    def __getitem__(self, at: slice) -> list[Item]: ...

    def __getitem__(self, at: int | slice) -> Item | list[Item]:
        if isinstance(at, slice):
            return [self._make(one) for one in range(*at.indices(self._count))]
        if not -self._count <= at < self._count:
            raise IndexError(at)
        return self._make(at % self._count)

    def __iter__(self) -> Iterator[Item]:
        return map(self._make, range(self._count))

    def __len__(self) -> int:
        return self._count


def chosen(items: Sequence[Item], numbers: npt.NDArray[np.int64]) -> Sequence[Item]:
    """The items of these numbers.

    >>> list(chosen("abcd", np.array([2, 0])))
    ['c', 'a']
    """
    return Made(len(numbers), lambda at: items[int(numbers[at])])


class Joined(Sequence[Item]):
    """The items of several sequences, one sequence after another."""

    def __init__(self, parts: Sequence[Sequence[Item]]) -> None:
        self._parts = parts
        self._starts = [0, *accumulate(map(len, parts))]

    @overload
    def __getitem__(self, at: int) -> Item: ...

    @overload
    def __getitem__(self, at: slice) -> list[Item]: ...

    def __getitem__(self, at: int | slice) -> Item | list[Item]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        at %= len(self)
        part = bisect_right(self._starts, at) - 1
        return self._parts[part][at - self._starts[part]]

    def __iter__(self) -> Iterator[Item]:
        return chain.from_iterable(self._parts)

    def __len__(self) -> int:
        return self._starts[-1]


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
