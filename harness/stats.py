"""Resampling statistics over per-query scores, in pure numpy; every function is vectorised over trials."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FEWEST_CLUSTERS = 5
"""Below this many clusters no interval is given: too few units to say how they vary."""
FEW_CLUSTERS = 20
"""Below this many clusters an interval is given with a warning."""


class Intervals(NamedTuple):
    """A mean per trial with the bounds of its interval, each of shape (trials,); bounds are NaN where refused."""

    mean: Floats
    low: Floats
    high: Floats
    clusters: int


def cluster_sums(scores: Floats, clusters: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Per-cluster totals (trials, clusters) and sizes (clusters,), clusters in sorted order of their labels."""
    labels, member = np.unique(np.asarray(clusters), return_inverse=True)
    sums = np.zeros((scores.shape[0], len(labels)))
    np.add.at(sums.T, member, scores.T)
    return sums, np.bincount(member, minlength=len(labels)).astype(np.float64)


def cluster_bootstrap(
    scores: Floats, clusters: npt.ArrayLike, *, seed: int, resamples: int = 10_000, level: float = 0.95
) -> Intervals:
    """Percentile intervals for the mean score of each trial, resampling whole clusters of queries.

    `scores` has shape (trials, queries), `clusters` one label per query. A resample draws as many clusters as there
    are, with replacement, and its mean is the total score of the drawn clusters over their total size (the ratio
    estimator; Davison & Hinkley, Bootstrap Methods and their Application, 1997, section 3.8; Field & Welsh, JRSS B 69,
    2007). All trials share the resamples, so the interval of a difference is that of the differenced scores.
    """
    mean = scores.mean(axis=1) if scores.shape[1] else np.full(len(scores), np.nan)
    sums, sizes = cluster_sums(scores, clusters)
    count = len(sizes)
    if count < FEWEST_CLUSTERS:
        refused = np.full(len(scores), np.nan)
        return Intervals(mean, refused, refused.copy(), count)
    rng = np.random.default_rng(seed)
    means = np.empty((resamples, len(scores)))
    # How often each cluster is drawn is multinomial; one matrix product then scores a block of resamples at once.
    for start in range(0, resamples, 1000):
        drawn = rng.multinomial(count, np.full(count, 1 / count), size=min(1000, resamples - start)).astype(np.float64)
        means[start : start + len(drawn)] = (drawn @ sums.T) / (drawn @ sizes)[:, None]
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return Intervals(mean, low, high, count)
