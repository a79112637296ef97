"""Unions of half-open integer intervals."""

from collections.abc import Iterable

Interval = tuple[int, int]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Disjoint, sorted intervals that cover the same integers; joins adjacent intervals and drops empty ones.

    >>> union([(5, 8), (0, 2), (2, 3), (6, 9), (4, 4)])
    [(0, 3), (5, 9)]
    """
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def size(intervals: Iterable[Interval]) -> int:
    """The number of integers in disjoint intervals."""
    return sum(end - start for start, end in intervals)


def overlap(interval: Interval, disjoint: Iterable[Interval]) -> int:
    """The number of integers of `interval` that lie in disjoint intervals.

    >>> overlap((2, 7), [(0, 3), (5, 9)])
    3
    """
    start, end = interval
    return sum(max(0, min(end, e) - max(start, s)) for s, e in disjoint)


def common(one: Iterable[Interval], other: list[Interval]) -> int:
    """The number of integers that two lists of disjoint intervals have in common."""
    return sum(overlap(interval, other) for interval in one)
