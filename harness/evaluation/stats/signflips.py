"""Paired randomisation: were the signs of the differences a matter of chance?

Under the hypothesis that two trials do not differ, a cluster of queries might as well have differed the other way
round. Flipping the signs of whole clusters at random gives the distribution of the statistic; flipping them for all
trials at once keeps how the trials vary together, so that many comparisons need no more correction than they must have.

The statistic t of one difference is |sum of the differences| / root of the sum of their squared residuals, a residual
being what a cluster differs by beyond its share of the mean. It is compared as t / root of (1 + v t^2), v being the sum
of the squared cluster sizes over the square of their sum: the order is the same, the greatest possible value finite,
and ties stay ties whatever the last bits say. With clusters of one size this is |sum| / root of the sum of squares.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from harness.evaluation.stats.clusters import BLOCK, Flags, Floats

FLIPS = 10_000
_TIE = 1e-9
"""Statistics that differ by less are the same: a flip that changes nothing must count as reaching what was observed."""


class Differences(NamedTuple):
    """Mean paired differences to a baseline and what is known of them, each of shape (trials,).

    `adjusted`, `low` and `high` hold for the whole family at once; `p`, `alone_low` and `alone_high` for a comparison
    by itself. An interval leaves out 0 just where its p is at most 1 - level. Bounds are infinite where there are too
    few clusters for any. `critical` is what the greatest statistic must exceed.
    """

    p: Floats
    adjusted: Floats
    low: Floats
    high: Floats
    alone_low: Floats
    alone_high: Floats
    critical: float


class Sums(NamedTuple):
    """Sums of differences by cluster, between `low` and `high`, and the queries counted, each (trials, clusters).

    `low` and `high` are the same except where judgments are missing.
    """

    low: Floats
    high: Floats
    sizes: Floats

    @property
    def middle(self) -> Floats:
        return (self.low + self.high) / 2

    @property
    def queries(self) -> Floats:
        """The queries counted, (trials,)."""
        return np.asarray(np.maximum(1.0, self.sizes.sum(axis=1)))

    @property
    def mean(self) -> Floats:
        """The middle of each mean difference, (trials,)."""
        return np.asarray(self.middle.sum(axis=1) / self.queries)

    @property
    def spread(self) -> Floats:
        """v of the module's docstring, (trials,)."""
        return np.asarray((self.sizes**2).sum(axis=1) / self.queries**2)

    @property
    def slack(self) -> Floats:
        """How far the residual norm may be from that of the middle, (trials,); 0 where nothing is missing.

        By the triangle inequality, for deviations of at most (high - low) / 2 in each cluster.
        """
        half = (self.high - self.low) / 2
        return np.asarray(np.sqrt((half**2).sum(axis=1)) + half.sum(axis=1) * np.sqrt(self.spread))

    @property
    def norm(self) -> Floats:
        """The greatest the residual norm can be, (trials,)."""
        return np.asarray(np.sqrt(_squares(self.middle - self.mean[:, None] * self.sizes)) + self.slack)

    def rows(self, chosen: Flags) -> "Sums":
        return Sums(self.low[chosen], self.high[chosen], self.sizes[chosen])


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

    They are the same except where judgments are missing: there they are the least and the greatest a difference can be,
    and tests and intervals hold for whatever it is, as the least statistic observed is held against the greatest under
    flips. `tested`, of shape (trials,), leaves out trials with too much missing, which have p 1 and would weaken the
    tests of the others. `sizes` counts the queries of each cluster, (clusters,), or by trial where not all have a
    value for the same queries, (trials, clusters).

    p is the share of flips whose statistic, adjusted p the share whose greatest statistic over all trials (single-step
    max-T: Westfall & Young, Resampling-Based Multiple Testing, 1993, section 2.3), reaches the observed one. The
    differences are flipped as they are, which is exact where there is no difference, and centred, which keeps the
    distribution where there is one (wild cluster bootstrap-t: Cameron, Gelbach & Miller, Review of Economics and
    Statistics 90, 2008); p is the greater of both. An interval is the mean with what the statistic must exceed, on both
    sides, so that it leaves out 0 just where p is at most 1 - level. All sign patterns of up to 14 clusters are gone
    through.
    """
    count = len(low)
    if not count:
        empty = np.ones(0)
        return Differences(empty, empty, empty, empty, empty, empty, 0.0)
    # Scores are rounded to twelve decimals here: noise in their last bits is no difference.
    every = Sums(np.round(low, 12), np.round(high, 12), np.broadcast_to(sizes, low.shape).astype(np.float64))
    chosen = np.ones(count, bool) if tested is None else tested
    # Where nothing can be tested, the bounds of differences still need a quantile: that of the middle of what they are.
    family = every.rows(chosen) if chosen.any() else Sums(every.middle, every.middle, every.sizes)
    drawn = greatest_statistics(family, seed, flips)
    p, adjusted = np.ones(count), np.ones(count)
    if chosen.any():
        p[chosen], adjusted[chosen] = _tail_shares(least_statistics(family), drawn)
    critical = max(upper_point(table.max(axis=1), 1 - level) for table in drawn)
    alone = np.full(count, critical)
    alone[chosen if chosen.any() else slice(None)] = np.max([upper_points(t, 1 - level) for t in drawn], axis=0)
    return Differences(p, adjusted, *_bounds(every, np.full(count, critical)), *_bounds(every, alone), critical)


def sign_flips(clusters: int, seed: int, flips: int = FLIPS) -> Iterator[Floats]:
    """Signs in blocks of shape (some flips, clusters), the very first row unflipped.

    All patterns, each without its mirror, if there are at most `flips`; else that many drawn at random.
    """
    if clusters <= 1 + int(np.log2(flips)):
        patterns = np.arange(2 ** max(0, clusters - 1))[:, None] >> np.arange(clusters)
        yield np.asarray(1.0 - 2.0 * (patterns & 1), np.float64)
        return
    rng, rows = np.random.default_rng(seed), max(1, BLOCK // clusters)
    for start in range(0, flips, rows):
        coins = rng.integers(0, 2, (min(rows, flips - start), clusters), dtype=np.int8)
        signs = np.asarray(1.0 - 2.0 * coins, np.float64)
        if not start:
            signs[0] = 1.0
        yield signs


def greatest_statistics(sums: Sums, seed: int, flips: int) -> tuple[Floats, Floats]:
    """The greatest each statistic can be under each flip, of the differences as they are and centred.

    Two arrays of shape (flips, trials), the same flips for both.
    """
    blocks = [list(_flipped(sums, signs)) for signs in sign_flips(sums.low.shape[1], seed, flips)]
    raw, centred = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return raw, centred


def _flipped(sums: Sums, signs: Floats) -> Iterator[Floats]:
    """The greatest statistics under these flips, for whatever lies between `low` and `high`: as they are, centred."""
    middle, half = sums.middle, (sums.high - sums.low).sum(axis=1) / 2
    alike = bool((sums.sizes == sums.sizes[0]).all())
    sizes = sums.sizes[:1] if alike else sums.sizes
    # Everything that centring changes is linear in these four products.
    reached, crossed = signs @ middle.T, signs @ (middle * sums.sizes).T
    sized, squared = signs @ sizes.T, signs @ (sizes**2).T
    noise = 1e-12 * np.abs(middle).sum(axis=1)
    for shift in (np.zeros(len(middle)), sums.mean):
        flipped = reached - shift * sized
        flipped[np.abs(flipped) < noise] = 0.0
        mean = flipped / sums.queries
        squares = _squares(middle - shift[:, None] * sums.sizes) - 2 * mean * (crossed - shift * squared)
        squares += mean**2 * (sums.sizes**2).sum(axis=1)
        norms = np.maximum(0.0, np.sqrt(np.maximum(squares, 0.0)) - sums.slack)
        yield bounded(np.abs(flipped) + half, norms, sums.spread)


def _squares(rows: Floats) -> Floats:
    return np.asarray((rows**2).sum(axis=1))


def least_statistics(sums: Sums) -> Floats:
    """The least each observed statistic can be, for whatever lies between `low` and `high`: shape (trials,)."""
    nearest = np.maximum(0.0, np.maximum(sums.low.sum(axis=1), -sums.high.sum(axis=1)))
    return bounded(nearest, sums.norm, sums.spread)


def bounded(reached: Floats, norms: Floats, spread: Floats) -> Floats:
    """t / root of (1 + v t^2) for t = reached / norms: 0 where nothing is reached, else up to 1 / root of v."""
    below = np.sqrt(norms**2 + spread * reached**2)
    return np.asarray(np.divide(reached, below, out=np.zeros_like(below), where=below > 0))


def _bounds(sums: Sums, critical: Floats) -> tuple[Floats, Floats]:
    """The mean differences whose statistic does not exceed `critical`, (trials,).

    Infinite where all are, and where no query is counted.
    """
    point = critical + _TIE
    room = 1 - sums.spread * point**2
    finite = (room > 1e-12) & (sums.sizes.sum(axis=1) > 0)
    reach = np.full(len(point), np.inf)
    reach[finite] = point[finite] / np.sqrt(room[finite]) * (sums.norm / sums.queries)[finite]
    return sums.low.sum(axis=1) / sums.queries - reach, sums.high.sum(axis=1) / sums.queries + reach


def upper_point(drawn: Floats, share: float) -> float:
    """What a statistic must exceed to be among the greatest `share` drawn; infinite where too few are drawn."""
    return float(upper_points(drawn[:, None], share)[0])


def upper_points(drawn: Floats, share: float) -> Floats:
    """`upper_point` of each column."""
    beyond = int(share * len(drawn) + 1e-9)
    if not beyond:
        return np.full(drawn.shape[1], np.inf)
    at = len(drawn) - 1 - beyond
    return np.asarray(np.partition(drawn, at, axis=0)[at])


def _tail_shares(observed: Floats, drawn: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """p of each comparison by itself and over all of them: shares of flips that reach what was observed."""
    p = np.max([(table >= observed - _TIE).mean(axis=0) for table in drawn], axis=0)
    adjusted = np.max([_reached(table.max(axis=1), observed) for table in drawn], axis=0)
    p[observed == 0] = adjusted[observed == 0] = 1.0
    return p, adjusted


def _reached(greatest: Floats, observed: Floats) -> Floats:
    """The share of values that reach each of those observed."""
    below = np.searchsorted(np.sort(greatest), observed - _TIE, side="left")
    # Counted before it is divided: 1 - 0.95 is more than 0.05 by its last bit, and p would contradict the interval.
    return np.asarray((len(greatest) - below) / len(greatest))


def holm(p: Floats) -> Floats:
    """Holm's step-down adjustment, blind to how comparisons vary together (Scand. J. Statist. 6, 1979)."""
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, stepped)
    return adjusted
