"""The primary metric, on which trials are compared, and the trials' scores on it by query."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.core.errors import ConfigError, did_you_mean
from harness.core.records import Floats
from harness.evaluation.metrics import split_metric
from harness.evaluation.metrics.measures import MEASURES
from harness.evaluation.results import TrialResult, resampling_seed
from harness.evaluation.stats import Flags
from harness.experiment.experiment import Experiment

BUDGET = "recall@1000t"
"""The primary metric if chunkers differ and the experiment names no metric at a token budget. Always scored."""


@dataclass(frozen=True, eq=False)
class Scores:
    """A metric's bounds per trial and query, over the queries on which every trial has a value.

    `low` and `high` have shape (trials, queries); they are equal where the value is certain. `clusters` holds one
    label per query, `index` the queries' positions in the query set, and `seed` is for resampling.
    """

    metric: str
    low: Floats
    high: Floats
    clusters: Sequence[str]
    index: Sequence[int]
    seed: int
    withheld: Flags
    """Whether so many values of a trial are missing that it is not tested, (trials,)."""

    @property
    def queries(self) -> int:
        """The number of queries that have a value."""
        return len(self.index)


def scores_of(results: Sequence[TrialResult], metric: str, clusters_by: str) -> Scores:
    """Return the scores of all trials on a metric.

    `clusters_by` is `queries` if each query is its own cluster. Raises ConfigError if the metric was not scored, if it
    is a geometric mean, or if no query has a value.
    """
    known = [*results[0].scores, *results[0].judged]
    if metric not in known:
        raise ConfigError(
            f"compare: '{metric}' was not scored.{did_you_mean(metric, known)} Scored: {', '.join(known)}"
        )
    if metric in MEASURES and MEASURES[metric].geometric:
        raise ConfigError(
            f"compare: {metric} is a geometric mean, so differences have no mean; compare on map, and `show` {metric}"
        )
    lows, highs = bounds_of(results, metric)
    answerable = ~np.isnan(lows).any(axis=0)
    if not answerable.any():
        raise ConfigError(f"compare: no query has a value of {metric}")
    by_query = clusters_by == "queries"
    labels = results[0].queries if by_query else results[0].clusters
    index = np.flatnonzero(answerable).tolist()
    seed = resampling_seed(results[0].queries, metric)
    bounded = [result.bounded(metric) for result in results]
    withheld = np.array([one is not None and one.withheld for one in bounded])
    return Scores(metric, lows[:, index], highs[:, index], [labels[at] for at in index], index, seed, withheld)


def primary_metric(experiment: Experiment, results: Sequence[TrialResult]) -> str:
    """Return the metric that trials are compared on: `compare.on`, else one at a token budget, else the first.

    If no metric has a token budget but trials differ in their chunkers, it is `BUDGET`, provided that was scored.
    """
    if experiment.compare.on:
        return experiment.compare.on
    metrics = experiment.metrics
    budgeted = next((name for name in metrics if split_metric(name).tokens is not None), None)
    if budgeted is None and chunkings(results) > 1 and BUDGET in results[0].scores:
        return BUDGET
    return budgeted or metrics[0]


def chunkings(results: Sequence[TrialResult]) -> int:
    """Return the number of different chunkers, settings included, among the trials."""
    chunkers = {tuple((k, v) for k, v in r.params.items() if k.split(".")[0] == "chunker") for r in results}
    return len(chunkers)


def bounds_of(results: Sequence[TrialResult], metric: str) -> tuple[Floats, Floats]:
    """Return the lower and upper bounds of a metric, each (trials, queries); equal where the value is certain."""
    bounded = [(result, result.bounded(metric)) for result in results]
    lows = [one.low if one else result.scores[metric] for result, one in bounded]
    highs = [one.high if one else result.scores[metric] for result, one in bounded]
    return np.array(lows), np.array(highs)
