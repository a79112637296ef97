"""What a finished trial has to say: per-query scores, selections, losses and costs, as plain records."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from harness.model import Floats
from harness.store import digest


def resampling_seed(queries: Sequence[str], metric: str) -> int:
    """The seed of a metric's bootstrap: the same resamples for every trial and grid on the same queries."""
    return int(digest({"queries": list(queries), "metric": metric})[:8], 16)


class Picked(NamedTuple):
    """One passage in one query's result: kept, or dropped by a step with a reason."""

    doc: str
    start: int
    end: int
    score: float
    tokens: int
    context_tokens: int = 0
    step: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Selection:
    """What one query ended up with, in rank order, and what its selector steps dropped on the way."""

    kept: list[Picked]
    dropped: list[Picked]


@dataclass(frozen=True)
class TrialResult:
    """The scores of one trial; `scores[metric]` has shape (queries,), NaN where a query has no value."""

    name: str
    fingerprint: str
    params: Mapping[str, str]
    queries: Sequence[str]
    clusters: Sequence[str]
    scores: Mapping[str, Floats]
    fates: Sequence[Sequence[str]]
    efficiency: Mapping[str, float] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def mean(self, metric: str) -> float:
        """The mean over the queries that have a value; NaN where none has."""
        values = self.scores[metric]
        values = values[~np.isnan(values)]
        # fsum: the mean must not depend on numpy's order of summation.
        return math.fsum(values) / len(values) if len(values) else math.nan

    def means(self) -> dict[str, float]:
        """`mean` of every metric."""
        return {metric: self.mean(metric) for metric in self.scores}

    def losses(self) -> dict[str, int]:
        """How many evidence items met each fate."""
        counts: dict[str, int] = {}
        for fates in self.fates:
            for fate in fates:
                counts[fate] = counts.get(fate, 0) + 1
        return counts
