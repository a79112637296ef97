"""Clusters of queries that share a document: sums by cluster, standard errors and the design effect."""

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

FEWEST_CLUSTERS = 5
"""With fewer clusters there is no interval: too few units to estimate their variance."""
FEW_CLUSTERS = 20
"""With fewer clusters an interval comes with a warning."""
ALPHA = 0.05
"""The family-wise error rate: the probability of any wrong verdict if no trial differs from the baseline."""
TESTABLE_CLUSTERS = 1 + math.ceil(-math.log2(ALPHA))
"""With fewer clusters there are too few sign patterns for p to reach `ALPHA` at all."""

BLOCK = 4_000_000
"""Max random numbers in memory at a time, which bounds memory for any number of clusters."""


def cluster_sums(scores: Floats, clusters: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Sums of scores (trials, clusters) and sizes (clusters,), with clusters sorted by label.

    `scores` has shape (trials, queries), `clusters` one label per query.
    """
    labels, member = np.unique(np.asarray(clusters), return_inverse=True)
    sums = np.zeros((scores.shape[0], len(labels)))
    np.add.at(sums.T, member, scores.T)
    return sums, np.bincount(member, minlength=len(labels)).astype(np.float64)


def standard_errors(sums: Floats, sizes: Floats) -> Floats:
    """The standard error of each trial's mean over queries, with clusters as units: shape (trials,).

    The standard error of the ratio estimator (Cochran, Sampling Techniques, 1977, section 2.11). NaN with one cluster.
    """
    count, total = len(sizes), sizes.sum()
    if count < 2:
        return np.full(len(sums), np.nan)
    residuals = sums - (sums.sum(axis=1, keepdims=True) / total) * sizes
    return np.asarray(np.sqrt(count / (count - 1) * (residuals**2).sum(axis=1)) / total)


def design_effect(scores: Floats, clusters: npt.ArrayLike) -> Floats:
    """The variance of each trial's mean over the variance if queries were independent: shape (trials,).

    Kish, Survey Sampling, 1965, section 5.4. NaN if nothing varies.
    """
    sums, sizes = cluster_sums(scores, clusters)
    independent = scores.var(axis=1, ddof=1) / scores.shape[1] if scores.shape[1] > 1 else np.full(len(scores), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(independent > 0, standard_errors(sums, sizes) ** 2 / independent, np.nan))
