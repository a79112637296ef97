"""Interval arithmetic against sets of integers."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from harness.evaluation.metrics.intervals import common, overlap, size, union

INTERVALS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8)


def members(intervals: list[tuple[int, int]]) -> set[int]:
    return {at for start, end in intervals for at in range(start, end)}


@given(INTERVALS, INTERVALS)
def test_intervals_agree_with_sets(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    """union, size, overlap and common count integers."""
    a, b = union(one), union(other)
    assert members(a) == members(one)
    assert size(a) == len(members(one))
    assert all(end < start for (_, end), (start, _) in itertools.pairwise(a))
    assert common(a, b) == len(members(one) & members(other))
    for interval in one:
        assert overlap(interval, b) == len(members([interval]) & members(other))
