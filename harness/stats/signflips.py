"""Paired randomisation: were the signs of the differences a matter of chance?

Under the hypothesis that two trials do not differ, a cluster of queries might as well have differed the other way
round. Flipping the signs of whole clusters at random gives the distribution of the statistic; flipping them for all
trials at once keeps how the trials go together, so that many comparisons need no more correction than they must have.
"""

from typing import NamedTuple

import numpy as np

from harness.stats.clusters import Flags, Floats

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
    low: Floats,
    high: Floats,
    sizes: Floats,
    *,
    seed: int,
    tested: Flags | None = None,
    level: float = 0.95,
    flips: int = FLIPS,
) -> Differences:
    """Tests and simultaneous intervals of mean differences; `low` and `high` are sums by cluster (trials, clusters).

    They are the same but where judgments are missing: there they are the least and the greatest a difference can be,
    and tests and intervals hold for whatever it is, as the least statistic observed is held against the greatest under
    flips. `tested`, of shape (trials,), leaves out trials with too much missing, which have p 1 and would weaken the
    tests of the others. `sizes` counts the queries of each cluster, (clusters,), or by trial where not all have a
    value for the same queries, (trials, clusters).

    The statistic is |sum of differences| / root of the sum of their squares, which flipping signs leaves as it is below
    the line. Adjusted p: step-down max-T (Westfall & Young, Resampling-Based Multiple Testing, 1993, algorithm 2.8;
    Romano & Wolf, JASA 100, 2005). Intervals: the differences that a test against the quantile of the greatest
    statistic would not reject. With up to 13 clusters all sign patterns are gone through.
    """
    sizes = np.broadcast_to(sizes, low.shape)
    p, adjusted = np.ones(len(low)), np.ones(len(low))
    if not len(low):
        return Differences(p, adjusted, p, p, 0.0)
    chosen = np.ones(len(low), bool) if tested is None else tested
    signs = sign_flips(low.shape[1], seed, flips)
    # Where nothing can be tested, the bounds of differences still need a quantile: that of the middle of what they are.
    middle = (low + high) / 2
    least, most = (low[chosen], high[chosen]) if chosen.any() else (middle, middle)
    drawn = greatest_statistics(least, most, signs)
    if chosen.any():
        p[chosen], adjusted[chosen] = _stepped_down(least_statistic(least, most, sizes[chosen], 0.0), drawn)
    # Centred: intervals are about what each difference is, not about there being none. With few clusters the two
    # points differ; the greater one keeps an interval from leaving out 0 where the test does not.
    counts = sizes[chosen] if chosen.any() else sizes
    shift = (least + most).sum(axis=1, keepdims=True) / (2 * np.maximum(1, counts.sum(axis=1, keepdims=True))) * counts
    centred = greatest_statistics(least - shift, most - shift, signs)
    critical = max(upper_point(table.max(axis=1), 1 - level) for table in (drawn, centred))
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


def greatest_statistics(low: Floats, high: Floats, signs: Floats) -> Floats:
    """The greatest the statistic can be under each flip, for whatever lies between `low` and `high`.

    Shape (flips, trials); 0 where a trial never differs, and never more than the root of the number of clusters.
    """
    norms, slack = least_norms(low, high), ((high - low) / 2).sum(axis=1)
    reached = np.abs(signs @ ((low + high) / 2).T) + slack
    return scaled(reached, norms, low.shape[1])


def least_norms(low: Floats, high: Floats) -> Floats:
    """The least root of a sum of squares of what lies between `low` and `high`, by row."""
    nearest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    return np.asarray(np.sqrt((nearest**2).sum(axis=1)))


def scaled(reached: Floats, norms: Floats, clusters: int) -> Floats:
    """Sums over norms, by column: 0 where both are 0, and at most what Cauchy and Schwarz allow."""
    most = np.sqrt(clusters)
    found = np.divide(reached, norms, out=np.where(reached > 0, most, 0.0), where=norms > 0)
    return np.asarray(np.minimum(found, most))


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
