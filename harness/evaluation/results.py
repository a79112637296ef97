"""Results of a finished trial as plain records: per-query scores, selections, loss attribution and costs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from harness.core.records import Floats
from harness.evaluation.metrics.matching import Passage
from harness.evaluation.metrics.measures import GEOMETRIC_FLOOR, MEASURES
from harness.storage.digest import digest


def resampling_seed(queries: Sequence[str], metric: str) -> int:
    """The seed of a metric's bootstrap: the same resamples for every trial and grid on the same queries."""
    return int(digest({"queries": list(queries), "metric": metric})[:8], 16)


@dataclass(frozen=True)
class Selection:
    """The passages selected for one query, in rank order, and the passages its selector steps dropped."""

    kept: list[Passage]
    dropped: list[Passage]


class ScoreBin(NamedTuple):
    """Hits with a score of at least `low` and less than `high`: how many there are, and the fraction relevant (`rate`).

    `rate_low` and `rate_high` bound the 95 % interval of `rate`; queries about one document are one cluster.
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
    """The score bins of one embedder, highest first, with the number of queries and chunkings they cover.

    Relevance comes from the evidence, as in `precision@k`: text not marked as evidence counts as irrelevant.
    """

    embedder: str
    queries: int
    chunkings: int
    bins: tuple[ScoreBin, ...]


@dataclass(frozen=True, eq=False)
class Judged:
    """A measure whose values may be missing or uncertain, over all queries of a trial; arrays of shape (queries,).

    That is a judge's, or a metric of another system that did not answer all queries, or returned passages that cannot
    be located. `judge` is the name of the judge or of the system. `values` is NaN if a judgment or an answer is
    missing; `low` and `high` then bound the value it could have had. All three are NaN if the measure does not apply to
    the query, such as recall without evidence.
    """

    judge: str
    values: Floats
    low: Floats
    high: Floats
    max_failed: float = 0.0

    @property
    def total(self) -> int:
        """The number of queries to which the measure applies."""
        return int((~np.isnan(self.low)).sum())

    @property
    def complete(self) -> int:
        """The number of queries with no missing judgment."""
        return int((~np.isnan(self.values)).sum())

    @property
    def withheld(self) -> bool:
        """Whether more than the fraction `max_failed` of the queries lack a value, so that no mean is reported."""
        return self.total - self.complete > self.max_failed * self.total

    @property
    def mean(self) -> float:
        """The mean over the complete queries; NaN if it is withheld or there are none."""
        found = self.values[~np.isnan(self.values)]
        return math.nan if self.withheld or not len(found) else math.fsum(found) / len(found)

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and highest possible mean over all queries, given the missing judgments; NaN if there are none."""
        if not self.total:
            return math.nan, math.nan
        low, high = (math.fsum(side[~np.isnan(side)]) / self.total for side in (self.low, self.high))
        return low, high


@dataclass(frozen=True, repr=False)
class TrialResult:
    """The scores of one trial; `scores[metric]` has shape (queries,), NaN if a query has no value."""

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
    """The judges' values, by measure; separate from `scores` because values may be missing."""
    uncertain: Mapping[str, Judged] = field(default_factory=dict)
    """The bounds of all `scores`, by metric, if another system left some of them uncertain."""

    def __repr__(self) -> str:
        return f"<TrialResult '{self.name}': {len(self.queries)} queries, {len(self.scores)} metrics>"

    def bounded(self, metric: str) -> Judged | None:
        """The values of a measure with their bounds; None if they are all known for certain."""
        return self.judged.get(metric) or self.uncertain.get(metric)

    def mean(self, metric: str) -> float:
        """The mean over the queries that have a value; the geometric mean for `gm_map`.

        NaN if no query has a value, or if the mean is withheld because too many values are missing.
        """
        values = self.scores.get(metric, np.zeros(0))
        bounded = self.bounded(metric)
        if bounded is not None and (metric in self.judged or bounded.withheld):
            return bounded.mean
        values = values[~np.isnan(values)]
        if metric in MEASURES and MEASURES[metric].geometric and len(values):
            return math.exp(math.fsum(np.log(np.maximum(values, GEOMETRIC_FLOOR))) / len(values))
        # fsum, so that the mean does not depend on numpy's order of summation.
        return math.fsum(values) / len(values) if len(values) else math.nan

    def min_mean(self, metric: str) -> float:
        """The lowest possible mean given the missing judgments, used to rank trials; -inf if there is none."""
        bounded = self.bounded(metric)
        lowest = bounded.bounds[0] if bounded else self.mean(metric)
        return -math.inf if math.isnan(lowest) else lowest

    def means(self) -> dict[str, float]:
        """The `mean` of every metric and of every judge measure."""
        return {metric: self.mean(metric) for metric in (*self.scores, *self.judged)}

    def losses(self) -> dict[str, int]:
        """The number of evidence items with each evidence outcome."""
        counts: dict[str, int] = {}
        for evidence_outcomes in self.evidence_outcomes:
            for outcome in evidence_outcomes:
                counts[outcome] = counts.get(outcome, 0) + 1
        return counts


def gathered(results: Sequence[TrialResult]) -> list[str]:
    """Each distinct warning once, followed by the names of the trials it concerns."""
    concerned: dict[str, list[str]] = {}
    for result in results:
        for warning in result.warnings:
            concerned.setdefault(warning, []).append(result.name)
    return [f"{warning} ({', '.join(trials)})" for warning, trials in concerned.items()]
