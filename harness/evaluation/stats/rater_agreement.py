"""Agreement of two raters, and means of a judge corrected by the grades that people gave to a sample."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.evaluation.stats.bootstrap import times_drawn
from harness.evaluation.stats.clusters import BLOCK, FEWEST_CLUSTERS, Flags, Floats
from harness.evaluation.stats.rates import Estimate


class Confusion(NamedTuple):
    """Counts of items by who calls them relevant: both people and the judge, only one of them, or neither."""

    both: int
    people_only: int
    judge_only: int
    neither: int

    @classmethod
    def of(cls, people: Flags, judge: Flags) -> "Confusion":
        """Count the items, given whether each is relevant to people and to the judge; both have shape (items,)."""
        counts = ((people & judge), (people & ~judge), (~people & judge), (~people & ~judge))
        return cls(*(int(count.sum()) for count in counts))


def kappa(table: npt.ArrayLike) -> Floats:
    """Cohen's kappa of confusion counts, last axis (both, people only, judge only, neither): shape (..., 4) to (...).

    (observed - expected) / (1 - expected) agreement; Cohen, Educational and Psychological Measurement 20, 1960. NaN
    if both raters give all items the same label.
    """
    both, first, second, neither = np.moveaxis(np.asarray(table, np.float64), -1, 0)
    total = both + first + second + neither
    observed = (both + neither) / total
    expected = ((both + first) * (both + second) + (neither + first) * (neither + second)) / total**2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((observed - expected) / (1 - expected))


def graded_kappa(table: npt.ArrayLike) -> float:
    """Cohen's kappa, unweighted, of counts by the first rater's grade (row) and the second's (column).

    NaN if both raters give all items the same grade.
    """
    counts = np.asarray(table, np.float64)
    total = counts.sum()
    observed, expected = np.trace(counts) / total, counts.sum(axis=0) @ counts.sum(axis=1) / total**2
    return float((observed - expected) / (1 - expected)) if expected < 1 else math.nan


def kappa_interval(
    people: Flags, judge: Flags, clusters: npt.ArrayLike, *, seed: int, resamples: int = 4000
) -> Estimate:
    """Kappa with a percentile interval that resamples clusters (queries), because the items of one are not independent.

    With fewer than five clusters the bounds are NaN.
    """
    labels, member = np.unique(np.asarray(clusters), return_inverse=True)
    cells = np.stack([people & judge, people & ~judge, ~people & judge, ~people & ~judge], axis=1).astype(np.float64)
    sums = np.zeros((len(labels), 4))
    np.add.at(sums, member, cells)
    if len(labels) < FEWEST_CLUSTERS:
        return Estimate(float(kappa(cells.sum(axis=0))), math.nan, math.nan)
    rng, rows = np.random.default_rng(seed), max(1, min(resamples, BLOCK // len(labels)))
    blocks = (times_drawn(rng, len(labels), min(rows, resamples - at)) @ sums for at in range(0, resamples, rows))
    found = kappa(np.concatenate(list(blocks)))
    found = found[~np.isnan(found)]
    low, high = np.quantile(found, [0.025, 0.975]) if len(found) else (math.nan, math.nan)
    return Estimate(float(kappa(cells.sum(axis=0))), float(low), float(high))


def ppi_by_query(people: Floats, judge: Floats, judge_everywhere: Floats) -> Estimate:
    """The estimated mean over queries of the score by people, if people have graded some passages of each query.

    All arrays have shape (queries,). `people` and `judge` are unbiased estimates of a query's score from the graded
    passages alone, each weighted by the inverse of its probability of being drawn (Horvitz & Thompson, JASA 47, 1952);
    `judge_everywhere` is the judge's score from all passages. A query's estimate is people - weight * (judge -
    judge_everywhere), with the weight that minimises its variance over queries (PPI++). Passages of one query need
    not be independent. For the difference of two trials, pass differences.
    """
    slack = judge - judge_everywhere
    spread = float(np.var(slack, ddof=1))
    weight = min(1.0, max(0.0, float(np.cov(people, slack, ddof=1)[0, 1]) / spread)) if spread else 0.0
    found = people - weight * slack
    from scipy.special import stdtrit

    value, error = float(found.mean()), float(found.std(ddof=1)) / math.sqrt(len(found))
    reach = float(stdtrit(len(found) - 1, 0.975)) * error
    return Estimate(value, value - reach, value + reach)
