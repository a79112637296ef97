"""The metric role: a researcher's own metric, computed for each query from the selected passages."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from harness.components.component import Component
from harness.core.records import Chunk, Query


class Selected(NamedTuple):
    """What a metric sees of a query.

    `passages` are those selected, in rank order, cut to the rank or the token budget of the metric's name. `found` has
    for each evidence item of the query the rank at which the passages contain it, or None; ranks count from 1.
    `relevant` has for each passage whether it is relevant, as in `precision`.
    """

    query: Query
    passages: Sequence[Chunk]
    found: Sequence[int | None]
    relevant: Sequence[bool]


class Metric(Component):
    """A measure of the passages selected for a query. Higher is better.

    The harness adds cutoffs: `my_metrics.py:MyMetric@5` sees the first five passages, `@1000t` the first 1,000 tokens.
    """

    role: ClassVar[str] = "metric"

    @abstractmethod
    def value(self, selected: Selected) -> float | None:
        """Return the value of a query; None if it has none and is left out of the mean."""
