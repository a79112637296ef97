"""Shares of things that come in clusters."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.evaluation.stats.clusters import Floats, cluster_sums

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
