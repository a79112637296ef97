"""Queries that share a document are one cluster: sums by cluster, and what clustering costs."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

FEWEST_CLUSTERS = 5
"""Below this many clusters no interval is given: too few units to say how they vary."""
FEW_CLUSTERS = 20
"""Below this many clusters an interval is given with a warning."""

BLOCK = 4_000_000
"""Random numbers held at a time, so that memory stays bounded however many clusters there are."""


def cluster_sums(scores: Floats, clusters: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Per-cluster totals (trials, clusters) and sizes (clusters,), clusters in sorted order of their labels."""
    labels, member = np.unique(np.asarray(clusters), return_inverse=True)
    sums = np.zeros((scores.shape[0], len(labels)))
    np.add.at(sums.T, member, scores.T)
    return sums, np.bincount(member, minlength=len(labels)).astype(np.float64)


def standard_errors(sums: Floats, sizes: Floats) -> Floats:
    """The standard error of each trial's mean over queries, clusters being the units: shape (trials,).

    Of the ratio estimator (Cochran, Sampling Techniques, 1977, section 2.11); NaN with one cluster.
    """
    count, total = len(sizes), sizes.sum()
    if count < 2:
        return np.full(len(sums), np.nan)
    residuals = sums - (sums.sum(axis=1, keepdims=True) / total) * sizes
    return np.asarray(np.sqrt(count / (count - 1) * (residuals**2).sum(axis=1)) / total)


def design_effect(scores: Floats, clusters: npt.ArrayLike) -> Floats:
    """How many times larger the variance of each trial's mean is than if queries were independent: shape (trials,).

    Kish, Survey Sampling, 1965, section 5.4. NaN where nothing varies.
    """
    sums, sizes = cluster_sums(scores, clusters)
    independent = scores.var(axis=1, ddof=1) / scores.shape[1] if scores.shape[1] > 1 else np.full(len(scores), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(independent > 0, standard_errors(sums, sizes) ** 2 / independent, np.nan))
