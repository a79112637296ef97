"""Rates (fractions) of clustered observations, with intervals."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.evaluation.stats.clusters import Floats, cluster_sums

Z = 1.959963984540054
"""The normal quantile of a two-sided 95 % interval."""


class Estimate(NamedTuple):
    """A value with the bounds of its 95 % interval; NaN if there is none."""

    value: float
    low: float
    high: float


def wilson(successes: int, total: int) -> Estimate:
    """A fraction of independent items with its score interval (Wilson, JASA 22, 1927); NaN if there are no items."""
    if not total:
        return Estimate(math.nan, math.nan, math.nan)
    from scipy.stats import binomtest

    found = binomtest(successes, total).proportion_ci(0.95, method="wilson")
    return Estimate(successes / total, float(found.low), float(found.high))


def clustered_rate(successes: Floats, trials: Floats, clusters: npt.ArrayLike) -> Estimate:
    """The success rate of clustered trials, with a Wilson interval based on the effective sample size.

    `successes` and `trials` have shape (units,), `clusters` one label per unit. The effective sample size is
    p (1 - p) / V, where V is the linearized variance between clusters (Korn & Graubard, Survey Methodology 24, 1998;
    Dean & Pagano, J. Surv. Stat. Methodol. 3, 2015), and at most the number of trials. If p is 0 or 1, V is 0; the
    number of clusters with trials is used instead.
    """
    total = float(trials.sum())
    if not total:
        return Estimate(float("nan"), float("nan"), float("nan"))
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
    centre = (p + Z**2 / (2 * effective)) / (1 + Z**2 / effective)
    half = Z * np.sqrt(p * (1 - p) / effective + Z**2 / (4 * effective**2)) / (1 + Z**2 / effective)
    # min and max keep p inside the interval despite floating-point noise.
    return Estimate(p, max(0.0, min(p, float(centre - half))), min(1.0, max(p, float(centre + half))))
