"""Paired randomization tests: sign flips of the differences between trials, by cluster.

If two trials do not differ, the difference of each cluster of queries could equally well have had the opposite sign.
Flipping the signs of entire clusters at random gives the null distribution of the statistic. Flipping them for all
trials at once keeps the correlation between trials, so that multiple comparisons are not corrected more than needed.

The statistic t of one difference is |sum of the differences| / root of the sum of their squared residuals. The residual
of a cluster is its difference minus its size times the mean difference. Statistics are compared as
t / root of (1 + v t^2), where v is the sum of the squared cluster sizes over the square of their sum. This keeps the
order of the statistics, makes the max possible value finite, and keeps ties despite floating-point noise. With clusters
of equal size it equals |sum| / root of the sum of squares.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from harness.evaluation.stats.clusters import BLOCK, Flags, Floats

FLIPS = 10_000
_TIE = 1e-9
"""Statistics that differ by less are tied: a flip that changes nothing must count as reaching the observed value."""


class Differences(NamedTuple):
    """Tests and intervals of mean paired differences to a baseline, each of shape (trials,).

    `adjusted` p-values and the bounds `low` and `high` are simultaneous over all comparisons; `p`, `alone_low` and
    `alone_high` are for a single comparison. An interval excludes 0 exactly if its p-value is at most 1 - level. Bounds
    are infinite if there are too few clusters. `critical` is the critical value of the max statistic.
    """

    p: Floats
    adjusted: Floats
    low: Floats
    high: Floats
    alone_low: Floats
    alone_high: Floats
    critical: float


class Sums(NamedTuple):
    """Bounds `low` and `high` of the sums of differences by cluster, and query counts `sizes`, each (trials, clusters).

    `low` and `high` are equal unless judgments are missing.
    """

    low: Floats
    high: Floats
    sizes: Floats

    @property
    def middle(self) -> Floats:
        """The midpoint of `low` and `high`, (trials, clusters)."""
        return (self.low + self.high) / 2

    @property
    def queries(self) -> Floats:
        """The number of queries counted, at least 1, (trials,)."""
        return np.asarray(np.maximum(1.0, self.sizes.sum(axis=1)))

    @property
    def mean(self) -> Floats:
        """The mean difference at the midpoint of the bounds, (trials,)."""
        return np.asarray(self.middle.sum(axis=1) / self.queries)

    @property
    def spread(self) -> Floats:
        """v in the module's docstring, (trials,)."""
        return np.asarray((self.sizes**2).sum(axis=1) / self.queries**2)

    @property
    def slack(self) -> Floats:
        """Max deviation of the residual norm from its value at the midpoint, (trials,); 0 if nothing is missing.

        Follows from the triangle inequality, for deviations of at most (high - low) / 2 in each cluster.
        """
        half = (self.high - self.low) / 2
        return np.asarray(np.sqrt((half**2).sum(axis=1)) + half.sum(axis=1) * np.sqrt(self.spread))

    @property
    def norm(self) -> Floats:
        """The max possible residual norm, (trials,)."""
        return np.asarray(np.sqrt(_squares(self.middle - self.mean[:, None] * self.sizes)) + self.slack)

    def rows(self, chosen: Flags) -> "Sums":
        """The sums of the trials flagged in `chosen`, (trials,)."""
        return Sums(self.low[chosen], self.high[chosen], self.sizes[chosen])


def paired_differences(
    sums: Sums,
    *,
    seed: int,
    tested: Flags | None = None,
    level: float = 0.95,
    flips: int = FLIPS,
) -> Differences:
    """Tests and simultaneous intervals of mean differences, given their sums by cluster.

    If judgments are missing, the bounds of the sums are the min and max possible differences, and tests
    and intervals are valid for any value in between: the min observed statistic is compared with the max under flips.
    `tested`, (trials,), excludes trials with too much missing, which get p 1 and would weaken the tests of the others.
    `sums.sizes` may also have the shape (clusters,), if all trials have values for the same queries.

    p is the fraction of flips whose statistic reaches the observed one. Adjusted p is the fraction whose max statistic
    over all trials reaches it (single-step max-T: Westfall & Young, Resampling-Based Multiple Testing, 1993, section
    2.3). The differences are flipped uncentred, which is exact if there is no difference, and centred, which keeps the
    distribution if there is one (wild cluster bootstrap-t: Cameron, Gelbach & Miller, Review of Economics and
    Statistics 90, 2008); p is the larger of the two. Intervals invert the test at the critical value, so they exclude 0
    exactly if p is at most 1 - level. With up to 14 clusters all sign patterns are enumerated.
    """
    count = len(sums.low)
    if not count:
        empty = np.ones(0)
        return Differences(empty, empty, empty, empty, empty, empty, 0.0)
    # Rounding to twelve decimals removes floating-point noise, which is not a difference.
    sizes = np.broadcast_to(sums.sizes, sums.low.shape).astype(np.float64)
    every = Sums(np.round(sums.low, 12), np.round(sums.high, 12), sizes)
    chosen = np.ones(count, bool) if tested is None else tested
    # If no trial can be tested, the intervals still need a critical value: that of the midpoints of all differences.
    family = every.rows(chosen) if chosen.any() else Sums(every.middle, every.middle, every.sizes)
    drawn = greatest_statistics(family, seed, flips)
    p, adjusted = np.ones(count), np.ones(count)
    if chosen.any():
        p[chosen], adjusted[chosen] = _tail_fractions(least_statistics(family), drawn)
    critical = max(upper_point(table.max(axis=1), 1 - level) for table in drawn)
    alone = np.full(count, critical)
    alone[chosen if chosen.any() else slice(None)] = np.max([upper_points(t, 1 - level) for t in drawn], axis=0)
    return Differences(p, adjusted, *_bounds(every, np.full(count, critical)), *_bounds(every, alone), critical)


def sign_flips(clusters: int, seed: int, flips: int = FLIPS) -> Iterator[Floats]:
    """Signs (1.0 or -1.0) in blocks of shape (some flips, clusters); the first row of all is unflipped.

    All sign patterns, without their mirror images, if there are at most `flips` of them; else `flips` random patterns.
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
    """The max possible statistic of each trial under each flip, for uncentred and for centred differences.

    Two arrays of shape (flips, trials), with the same flips in both.
    """
    blocks = [list(_flipped(sums, signs)) for signs in sign_flips(sums.low.shape[1], seed, flips)]
    raw, centred = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return raw, centred


def _flipped(sums: Sums, signs: Floats) -> Iterator[Floats]:
    """The max statistics under these flips for any sums between `low` and `high`: first uncentred, then centred."""
    middle, half = sums.middle, (sums.high - sums.low).sum(axis=1) / 2
    same_sizes = bool((sums.sizes == sums.sizes[0]).all())
    sizes = sums.sizes[:1] if same_sizes else sums.sizes
    # Centring changes the statistics only through these four products.
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
    """The min possible observed statistic of each trial, for any sums between `low` and `high`: shape (trials,)."""
    nearest = np.maximum(0.0, np.maximum(sums.low.sum(axis=1), -sums.high.sum(axis=1)))
    return bounded(nearest, sums.norm, sums.spread)


def bounded(reached: Floats, norms: Floats, spread: Floats) -> Floats:
    """t / root of (1 + v t^2) for t = reached / norms and v = spread: from 0 if `reached` is 0 to 1 / root of v."""
    below = np.sqrt(norms**2 + spread * reached**2)
    return np.asarray(np.divide(reached, below, out=np.zeros_like(below), where=below > 0))


def _bounds(sums: Sums, critical: Floats) -> tuple[Floats, Floats]:
    """The bounds of the mean differences whose statistic does not exceed `critical`, each (trials,).

    Infinite if all differences qualify, or if no query is counted.
    """
    point = critical + _TIE
    room = 1 - sums.spread * point**2
    finite = (room > 1e-12) & (sums.sizes.sum(axis=1) > 0)
    reach = np.full(len(point), np.inf)
    reach[finite] = point[finite] / np.sqrt(room[finite]) * (sums.norm / sums.queries)[finite]
    return sums.low.sum(axis=1) / sums.queries - reach, sums.high.sum(axis=1) / sums.queries + reach


def upper_point(drawn: Floats, share: float) -> float:
    """The value that a statistic must exceed to be in the top fraction `share` of those drawn, (draws,).

    Infinite if too few are drawn.
    """
    return float(upper_points(drawn[:, None], share)[0])


def upper_points(drawn: Floats, share: float) -> Floats:
    """The `upper_point` of each column of `drawn`, (draws, trials)."""
    beyond = int(share * len(drawn) + 1e-9)
    if not beyond:
        return np.full(drawn.shape[1], np.inf)
    at = len(drawn) - 1 - beyond
    return np.asarray(np.partition(drawn, at, axis=0)[at])


def _tail_fractions(observed: Floats, drawn: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Single and adjusted p-values: the fractions of flips that reach the observed statistics."""
    p = np.max([(table >= observed - _TIE).mean(axis=0) for table in drawn], axis=0)
    adjusted = np.max([_reached(table.max(axis=1), observed) for table in drawn], axis=0)
    p[observed == 0] = adjusted[observed == 0] = 1.0
    return p, adjusted


def _reached(greatest: Floats, observed: Floats) -> Floats:
    """The fraction of values in `greatest` that reach each observed value."""
    below = np.searchsorted(np.sort(greatest), observed - _TIE, side="left")
    # Count, then divide: 1 - 0.95 is slightly more than 0.05 in floating point, and p would contradict the interval.
    return np.asarray((len(greatest) - below) / len(greatest))


def holm(p: Floats) -> Floats:
    """Holm's step-down adjusted p-values, (comparisons,), which ignore correlation (Scand. J. Statist. 6, 1979)."""
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, stepped)
    return adjusted
