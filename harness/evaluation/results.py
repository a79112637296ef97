"""What a finished trial has to say: per-query scores, selections, losses and costs, as plain records."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from harness.core.records import Floats
from harness.evaluation.metrics.measures import GEOMETRIC_FLOOR, GEOMETRIC_MEASURES
from harness.storage.digest import digest


def resampling_seed(queries: Sequence[str], metric: str) -> int:
    """The seed of a metric's bootstrap: the same resamples for every trial and grid on the same queries."""
    return int(digest({"queries": list(queries), "metric": metric})[:8], 16)


FACTS = (
    "chunks",
    "index_bytes",
    "context_tokens",
    "passages",
    "redundancy",
    "empty_results",
    "ann_recall",
    "usd_per_query",
    "rerank_usd",
    "index_usd",
    "queries_usd",
    *(f"{stage}_p{at}_ms" for stage in ("latency", "embed", "retrieve", "select") for at in (50, 95)),
)
"""What is known of a trial besides scores (`TrialResult.efficiency`), where it applies; and `step_<label>_<fact>`."""


class SelectedPassage(NamedTuple):
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

    kept: list[SelectedPassage]
    dropped: list[SelectedPassage]


class ScoreBin(NamedTuple):
    """Hits with a score of at least `low` and less than `high`: how many, and the share that is relevant.

    `rate_low` and `rate_high` bound its 95 % interval, with queries about one document taken as one cluster.
    """

    low: float
    high: float
    hits: int
    relevant: int
    rate: float
    rate_low: float
    rate_high: float


@dataclass(frozen=True)
class ScoreBins:
    """The bins of one embedder, the highest first, over so many queries and chunkings.

    Relevance is that of the evidence (`precision@k`): what nobody has marked counts as irrelevant.
    """

    embedder: str
    queries: int
    chunkings: int
    bins: tuple[ScoreBin, ...]


@dataclass(frozen=True, eq=False)
class Judged:
    """One measure of a judge over all queries of a trial; arrays of shape (queries,).

    `values` is NaN where a judgment is missing; `low` and `high` then bound the value, whatever it would have been.
    All three are NaN where the query cannot have one, such as recall without evidence.
    """

    judge: str
    values: Floats
    low: Floats
    high: Floats
    max_failed: float = 0.0

    @property
    def total(self) -> int:
        """Queries that ought to have a value."""
        return int((~np.isnan(self.low)).sum())

    @property
    def complete(self) -> int:
        """Queries all of whose judgments are there."""
        return int((~np.isnan(self.values)).sum())

    @property
    def withheld(self) -> bool:
        """Whether too many queries have no value for a mean to be told."""
        return self.total - self.complete > self.max_failed * self.total

    @property
    def mean(self) -> float:
        """The mean over the complete queries; NaN where it is withheld or there is none."""
        found = self.values[~np.isnan(self.values)]
        return math.nan if self.withheld or not len(found) else math.fsum(found) / len(found)

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest mean over all queries, whatever the missing judgments would have been."""
        if not self.total:
            return math.nan, math.nan
        low, high = (math.fsum(side[~np.isnan(side)]) / self.total for side in (self.low, self.high))
        return low, high


@dataclass(frozen=True)
class TrialResult:
    """The scores of one trial; `scores[metric]` has shape (queries,), NaN where a query has no value."""

    name: str
    fingerprint: str
    params: Mapping[str, str]
    queries: Sequence[str]
    clusters: Sequence[str]
    scores: Mapping[str, Floats]
    evidence_outcomes: Sequence[Sequence[str]]
    efficiency: Mapping[str, float] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    judged: Mapping[str, Judged] = field(default_factory=dict)
    """What the judges say, by measure; kept apart from `scores`, since values may be missing."""

    def mean(self, metric: str) -> float:
        """The mean over the queries that have a value, of `gm_map` the geometric one.

        NaN where none has a value, or where a judge's mean is withheld.
        """
        if metric in self.judged:
            return self.judged[metric].mean
        values = self.scores[metric]
        values = values[~np.isnan(values)]
        if metric in GEOMETRIC_MEASURES and len(values):
            return math.exp(math.fsum(np.log(np.maximum(values, GEOMETRIC_FLOOR))) / len(values))
        # fsum: the mean must not depend on numpy's order of summation.
        return math.fsum(values) / len(values) if len(values) else math.nan

    def min_mean(self, metric: str) -> float:
        """The least the mean can be, whatever missing judgments would have been: what to rank trials by."""
        least = self.judged[metric].bounds[0] if metric in self.judged else self.mean(metric)
        return -math.inf if math.isnan(least) else least

    def means(self) -> dict[str, float]:
        """`mean` of every metric and every measure of a judge."""
        return {metric: self.mean(metric) for metric in (*self.scores, *self.judged)}

    def losses(self) -> dict[str, int]:
        """How many evidence items met each fate."""
        counts: dict[str, int] = {}
        for evidence_outcomes in self.evidence_outcomes:
            for outcome in evidence_outcomes:
                counts[outcome] = counts.get(outcome, 0) + 1
        return counts


def gathered(results: Sequence[TrialResult]) -> list[str]:
    """Each distinct warning once, with the trials it concerns."""
    concerned: dict[str, list[str]] = {}
    for result in results:
        for warning in result.warnings:
            concerned.setdefault(warning, []).append(result.name)
    return [f"{warning} ({', '.join(trials)})" for warning, trials in concerned.items()]
