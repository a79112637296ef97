"""Resampling statistics over per-query scores, in pure numpy; every function is vectorised over trials."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FEWEST_CLUSTERS = 5
"""Below this many clusters no interval is given: too few units to say how they vary."""
FEW_CLUSTERS = 20
"""Below this many clusters an interval is given with a warning."""


_Z = 1.959963984540054
"""Two-sided 95 % of a normal distribution."""


class Rate(NamedTuple):
    """A share with the bounds of its 95 % interval; NaN of nothing."""

    value: float
    low: float
    high: float


def clustered_rate(successes: Floats, trials: Floats, clusters: npt.ArrayLike) -> Rate:
    """The share of successes among trials that come in clusters, with a Wilson interval on their effective number.

    `successes` and `trials` have shape (units,), `clusters` one label per unit. The effective number is p (1 - p) /
    V with V the linearized variance between clusters (Korn & Graubard, Survey Methodology 24, 1998; Dean & Pagano, J.
    Surv. Stat. Methodol. 3, 2015), at most the number of trials. Where p is 0 or 1, V says nothing, and the number of
    clusters with trials stands in.
    """
    total = float(trials.sum())
    if not total:
        return Rate(float("nan"), float("nan"), float("nan"))
    p = float(successes.sum()) / total
    sums, _ = cluster_sums(np.stack([successes, trials]), clusters)
    present = sums[1] > 0
    count = int(present.sum())
    if p in (0.0, 1.0) or count < 2:
        effective = float(count)
    else:
        deviations = (sums[0] - p * sums[1])[present] / total
        variance = count / (count - 1) * float((deviations**2).sum())
        effective = min(total, p * (1 - p) / variance) if variance else total
    centre = (p + _Z**2 / (2 * effective)) / (1 + _Z**2 / effective)
    half = _Z * np.sqrt(p * (1 - p) / effective + _Z**2 / (4 * effective**2)) / (1 + _Z**2 / effective)
    # The interval holds p itself, whatever the last bits say.
    return Rate(p, max(0.0, min(p, float(centre - half))), min(1.0, max(p, float(centre + half))))


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
