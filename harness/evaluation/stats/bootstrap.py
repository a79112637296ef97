"""The cluster bootstrap: means and their intervals from resampled clusters of queries, for all trials at once."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from harness.evaluation.stats.clusters import BLOCK, FEWEST_CLUSTERS, Floats, cluster_sums

RESAMPLES = 10_000

_KEPT = 2**24
"""The maximum number of counts kept in memory for one seed: 10,000 resamples of 1,677 clusters."""


class Intervals(NamedTuple):
    """A mean per trial with the bounds of its interval, each of shape (trials,); NaN bounds if there is no interval."""

    mean: Floats
    low: Floats
    high: Floats
    clusters: int


def bootstrap_means(sums: Floats, sizes: Floats, *, seed: int, resamples: int = RESAMPLES) -> Floats:
    """Means of resampled queries, shape (resamples, trials), from cluster `sums` (trials, clusters) and `sizes`.

    A resample draws as many clusters as there are, with replacement. Its mean is the total score of the drawn clusters
    over their total size (the ratio estimator; Davison & Hinkley, Bootstrap Methods and their Application, 1997,
    section 3.8; Field & Welsh, JRSS B 69, 2007). All trials share the resamples.
    """
    means = np.empty((resamples, len(sums)))
    start = 0
    # One matrix product computes the means of a block of resamples.
    for drawn in _blocks(seed, len(sizes), resamples):
        counts = drawn.astype(np.float64)
        means[start : start + len(drawn)] = (counts @ sums.T) / (counts @ sizes)[:, None]
        start += len(drawn)
    return means


def _blocks(seed: int, count: int, resamples: int) -> Iterable[npt.NDArray[Any]]:
    """How often each cluster is drawn in each resample, in blocks of resamples; small ones are kept in memory."""
    if count * resamples > _KEPT:
        return _drawn(seed, count, resamples)
    return _kept_blocks(seed, count, resamples)


@lru_cache(maxsize=4)
def _kept_blocks(seed: int, count: int, resamples: int) -> list[npt.NDArray[Any]]:
    # The trials of a grid share the draws of each metric; drawing costs much more than computing with them.
    kind = np.uint8 if count < 256 else np.uint16
    return [drawn.astype(kind) for drawn in _drawn(seed, count, resamples)]


def _drawn(seed: int, count: int, resamples: int) -> Iterator[Floats]:
    rng = np.random.default_rng(seed)
    rows = max(1, min(1000, BLOCK // count))
    for start in range(0, resamples, rows):
        yield times_drawn(rng, count, min(rows, resamples - start))


def times_drawn(rng: np.random.Generator, count: int, resamples: int) -> Floats:
    """How often each of `count` clusters occurs in `count` draws with replacement, (resamples, count)."""
    if count <= 1000:
        return rng.multinomial(count, np.full(count, 1 / count), size=resamples).astype(np.float64)
    # The same distribution at an eighth of the cost: a multinomial draw loops over all clusters.
    places = rng.integers(0, count, (resamples, count)) + count * np.arange(resamples)[:, None]
    return np.bincount(places.ravel(), minlength=resamples * count).reshape(resamples, count).astype(np.float64)


def cluster_bootstrap(
    scores: Floats, clusters: npt.ArrayLike, *, seed: int, resamples: int = RESAMPLES, level: float = 0.95
) -> Intervals:
    """Percentile intervals for the mean score of each trial, resampling entire clusters of queries.

    `scores` has shape (trials, queries), `clusters` one label per query. Plain percentile intervals cover the true mean
    too rarely when clusters are few. The percentiles are therefore expanded, which corrects for the bootstrap using the
    sample variance and for Student's t having heavier tails than the normal (Hesterberg, The American Statistician 69,
    2015, section 5.3). With fewer than FEWEST_CLUSTERS clusters the bounds are NaN.
    """
    mean = scores.mean(axis=1) if scores.shape[1] else np.full(len(scores), np.nan)
    sums, sizes = cluster_sums(scores, clusters)
    count = len(sizes)
    if count < FEWEST_CLUSTERS:
        refused = np.full(len(scores), np.nan)
        return Intervals(mean, refused, refused.copy(), count)
    tail = expanded_tail(count, level)
    low, high = np.quantile(bootstrap_means(sums, sizes, seed=seed, resamples=resamples), [tail, 1 - tail], axis=0)
    return Intervals(mean, low, high, count)


def expanded_tail(count: int, level: float) -> float:
    """The fraction of resamples beyond each bound of an interval from `count` clusters, for a confidence `level`."""
    from scipy.special import ndtr, stdtrit

    return float(ndtr(-np.sqrt(count / (count - 1)) * stdtrit(count - 1, (1 + level) / 2)))
