"""The metric that trials are compared on, and their scores on it, query by query."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.core.errors import ConfigError, did_you_mean
from harness.core.records import Floats
from harness.evaluation.metrics import parse_metric
from harness.evaluation.metrics.measures import GEOMETRIC_MEASURES
from harness.evaluation.results import TrialResult, resampling_seed
from harness.evaluation.stats import Flags
from harness.experiment.experiment import Experiment

BUDGET = "recall@1000t"
"""What chunkers are compared on where the experiment names nothing at a token budget; scored for every trial."""


@dataclass(frozen=True, eq=False)
class Scores:
    """A metric's least and greatest value per trial and query (trials, queries), over the queries that have one.

    Both are the same but where a judgment is missing. `index` gives the places of these queries among all.
    """

    metric: str
    low: Floats
    high: Floats
    clusters: Sequence[str]
    index: Sequence[int]
    seed: int
    withheld: Flags
    """Whether too many judgments of a trial are missing for it to be tested, (trials,)."""

    @property
    def queries(self) -> int:
        """How many queries have a value."""
        return len(self.index)


def scores_of(results: Sequence[TrialResult], metric: str, clusters_by: str) -> Scores:
    """The scores of all trials on a metric; raises ConfigError where it was not scored, or no query has a value."""
    known = [*results[0].scores, *results[0].judged]
    if metric not in known:
        raise ConfigError(
            f"compare: '{metric}' was not scored.{did_you_mean(metric, known)} Scored: {', '.join(known)}"
        )
    if metric in GEOMETRIC_MEASURES:
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
    withheld = np.array([metric in result.judged and result.judged[metric].withheld for result in results])
    return Scores(metric, lows[:, index], highs[:, index], [labels[at] for at in index], index, seed, withheld)


def primary_metric(experiment: Experiment, results: Sequence[TrialResult]) -> str:
    """What trials are compared on: what the experiment says, else at a token budget wherever chunkers differ."""
    if experiment.compare.on:
        return experiment.compare.on
    metrics = experiment.metrics
    budgeted = next((name for name in metrics if parse_metric(name).tokens is not None), None)
    if budgeted is None and chunkings(results) > 1 and BUDGET in results[0].scores:
        return BUDGET
    return budgeted or metrics[0]


def chunkings(results: Sequence[TrialResult]) -> int:
    """How many ways of cutting documents there are among the trials."""
    chunkers = {tuple((k, v) for k, v in r.params.items() if k.split(".")[0] == "chunker") for r in results}
    return len(chunkers)


def bounds_of(results: Sequence[TrialResult], metric: str) -> tuple[Floats, Floats]:
    """Least and greatest value per trial and query; the same but where a judgment is missing."""
    if metric in results[0].judged:
        judged = [result.judged[metric] for result in results]
        return np.array([one.low for one in judged]), np.array([one.high for one in judged])
    scores = np.array([result.scores[metric] for result in results])
    return scores, scores
