"""Paired randomisation: were the signs of the differences a matter of chance?

Under the hypothesis that two trials do not differ, a cluster of queries might as well have differed the other way
round. Flipping the signs of whole clusters at random gives the distribution of the statistic; flipping them for all
trials at once keeps how the trials go together, so that many comparisons need no more correction than they must have.
"""

from typing import NamedTuple

import numpy as np

from harness.stats.clusters import Floats

FLIPS = 10_000


class Differences(NamedTuple):
    """Mean paired differences to a baseline and what is known of them, each of shape (trials,).

    `p` is that of a comparison by itself, `adjusted` holds for the whole family. `low` and `high` bound all differences
    at once; infinite where there are too few clusters for a bound. `critical` is the bound on the greatest statistic.
    """

    p: Floats
    adjusted: Floats
    low: Floats
    high: Floats
    critical: float


def paired_differences(
    low: Floats, high: Floats, sizes: Floats, *, seed: int, level: float = 0.95, flips: int = FLIPS
) -> Differences:
    """Tests and simultaneous intervals of mean differences; `low` and `high` are sums by cluster (trials, clusters).

    They are the same but where judgments are missing: there they are the least and greatest a difference can be, and
    tests and intervals hold for whatever it is. `sizes` counts the queries of each cluster, (clusters,), or by trial
    where not all have a value for the same queries, (trials, clusters).

    The statistic is |sum of differences| / root of the sum of their squares, which flipping signs leaves as it is below
    the line. Adjusted p: step-down max-T (Westfall & Young, Resampling-Based Multiple Testing, 1993, algorithm 2.8;
    Romano & Wolf, JASA 100, 2005). Intervals: the differences that a test against the quantile of the greatest
    statistic would not reject. With up to 13 clusters all sign patterns are gone through.
    """
    sizes = np.broadcast_to(sizes, low.shape)
    if not len(low):
        nothing = np.zeros(0)
        return Differences(nothing, nothing, nothing, nothing, 0.0)
    signs = sign_flips(low.shape[1], seed, flips)
    observed = least_statistic(low, high, sizes, 0.0)
    middle = (low + high) / 2
    drawn = normalised(middle, signs)
    p, adjusted = _stepped_down(observed, drawn)
    # Centred: intervals are about what each difference is, not about there being none.
    centred = middle - middle.sum(axis=1, keepdims=True) / sizes.sum(axis=1, keepdims=True) * sizes
    critical = upper_point(normalised(centred, signs).max(axis=1), 1 - level)
    return Differences(p, adjusted, *bounds(low, high, sizes, critical), critical)


def sign_flips(clusters: int, seed: int, flips: int = FLIPS) -> Floats:
    """Signs of shape (flips, clusters), the first row unflipped; all patterns, each without its mirror, if they fit."""
    if clusters <= 1 + int(np.log2(flips)):
        patterns = np.arange(2 ** max(0, clusters - 1))[:, None] >> np.arange(clusters)
        return np.asarray(1.0 - 2.0 * (patterns & 1), np.float64)
    coins = np.random.default_rng(seed).integers(0, 2, (flips, clusters), dtype=np.int8)
    signs = np.asarray(1.0 - 2.0 * coins, np.float64)
    signs[0] = 1.0
    return signs


def normalised(sums: Floats, signs: Floats) -> Floats:
    """The statistic under each flip, shape (flips, trials); 0 where a trial never differs."""
    norms = np.sqrt((sums**2).sum(axis=1))
    scaled = np.divide(sums, norms[:, None], out=np.zeros_like(sums), where=norms[:, None] > 0)
    return np.asarray(np.abs(signs @ scaled.T))


def upper_point(drawn: Floats, share: float) -> float:
    """What a statistic must exceed to be among the greatest `share` drawn; infinite where too few are drawn."""
    beyond = int(share * len(drawn) + 1e-9)
    if not beyond:
        return float("inf")
    at = len(drawn) - 1 - beyond
    return float(np.partition(drawn, at)[at])


def least_statistic(low: Floats, high: Floats, sizes: Floats, difference: Floats | float) -> Floats:
    """The least the statistic can be, for whatever lies between `low` and `high`, against a supposed difference."""
    shift = np.reshape(difference, (-1, 1)) * sizes
    below, above = low - shift, high - shift
    nearest = np.maximum(0.0, np.maximum(below.sum(axis=1), -above.sum(axis=1)))
    norms = np.sqrt(np.maximum(below**2, above**2).sum(axis=1))
    return np.asarray(np.divide(nearest, norms, out=np.zeros_like(nearest), where=norms > 0))


def bounds(low: Floats, high: Floats, sizes: Floats, critical: float) -> tuple[Floats, Floats]:
    """The least and the greatest difference whose statistic does not exceed `critical`; infinite where none does."""
    sizes = np.broadcast_to(sizes, low.shape)
    found = np.full((2, len(low)), np.inf)
    # Where no difference, however large, has a statistic beyond the bound, there is no bound.
    bounded = sizes.sum(axis=1) > critical * np.sqrt((sizes**2).sum(axis=1))
    rows = low[bounded], high[bounded], sizes[bounded]
    found[:, bounded] = _edge(-rows[1], -rows[0], rows[2], critical), _edge(*rows, critical)
    return -found[0], found[1]


def _edge(low: Floats, high: Floats, sizes: Floats, critical: float) -> Floats:
    """The greatest difference not rejected, by halving."""
    inside: Floats = high.sum(axis=1) / sizes.sum(axis=1)
    # Beyond the greatest mean of a cluster by its whole range, the statistic has passed any bound that can be passed.
    reach = np.maximum(np.abs(low), np.abs(high)).max(axis=1, initial=0.0)
    outside = inside + np.maximum(reach, 1e-12)
    while (open_ := least_statistic(low, high, sizes, outside) <= critical).any():
        outside = np.where(open_, inside + 2 * (outside - inside), outside)
    for _ in range(60):
        middle = (inside + outside) / 2
        rejected = least_statistic(low, high, sizes, middle) > critical
        inside, outside = np.where(rejected, inside, middle), np.where(rejected, middle, outside)
    return inside


def _stepped_down(observed: Floats, drawn: Floats) -> tuple[Floats, Floats]:
    """p of each comparison by itself, and stepped down over all of them."""
    slack = 1e-12  # a flip that changes nothing must count as one that reaches the observed value
    p = (drawn >= observed - slack).mean(axis=0)
    p[observed == 0] = 1.0
    order = np.argsort(-observed, kind="stable")
    greatest = np.maximum.accumulate(drawn[:, order[::-1]], axis=1)[:, ::-1]
    stepped = np.maximum.accumulate((greatest >= observed[order] - slack).mean(axis=0))
    adjusted = np.empty_like(p)
    adjusted[order] = stepped
    adjusted[observed == 0] = 1.0
    return p, np.maximum(adjusted, p)


def holm(p: Floats) -> Floats:
    """Holm's step-down adjustment, which knows nothing of how comparisons go together (Scand. J. Statist. 6, 1979)."""
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, stepped)
    return adjusted
