"""The best trial of a grid: which trials may be the best, how likely, and its score corrected for selection bias."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from harness.evaluation.stats.bootstrap import bootstrap_means
from harness.evaluation.stats.clusters import Flags, Floats
from harness.evaluation.stats.signflips import sign_flips

_FOLDS = 10
_PARTITIONS = 200
_BLOCK = 256


class Choice(NamedTuple):
    """The trial with the highest mean, `best`, and how reliable this choice is.

    `p_best` is the fraction of resamples in which a trial has the highest mean. `p_value` tests the hypothesis that no
    other trial is better; trials with a `p_value` above 1 - level cannot be separated from the best. `corrected` is the
    mean to expect from a trial chosen this way on queries that were not used to choose it.
    """

    best: int
    p_best: Floats
    p_value: Floats
    corrected: float


def best_of(low: Floats, high: Floats, sizes: Floats, *, seed: int, tested: Flags | None = None) -> Choice:
    """Choose the best trial from sums of scores by cluster, `low` and `high` of shape (trials, clusters).

    They differ if judgments are missing: a trial is then chosen by its lowest possible scores, and excluded only by its
    highest possible scores. A trial that is not `tested`, because too much is missing, is neither chosen nor excluded,
    and does not exclude others. If no trial is tested, the choice is among all.
    """
    # Rounding removes floating-point noise, which is not a difference.
    low, high = np.round(low, 12), np.round(high, 12)
    among = np.ones(len(low), bool) if tested is None or not tested.any() else tested
    best = int(np.argmax(np.where(among, low.sum(axis=1), -np.inf)))
    p_best = np.zeros(len(low))
    if len(sizes) < 2:
        p_best[best] = 1.0
        return Choice(best, p_best, np.ones(len(low)), float("nan"))
    p_best[among] = _fraction_best(bootstrap_means(low[among], sizes, seed=seed))
    p_value = _not_beaten(low, high, np.ones(len(low), bool) if tested is None else tested, seed)
    return Choice(best, p_best, p_value, cross_validated(low[among], sizes, seed=seed))


def _fraction_best(means: Floats) -> Floats:
    """The fraction of resamples in which each trial has the highest mean; tied trials split a resample equally."""
    top = means >= means.max(axis=1, keepdims=True) - 1e-12
    return np.asarray((top / top.sum(axis=1, keepdims=True)).mean(axis=0))


def _not_beaten(low: Floats, high: Floats, tested: Flags, seed: int) -> Floats:
    """For each trial, the p-value of "no other trial is better", from the max one-sided statistic of all others.

    The trials that are not rejected include the best one with the chosen confidence: the truly best trial is rejected
    no more often than the level allows (Hsu, Annals of Statistics 9, 1981; Mogstad, Romano, Shaikh & Wilhelm, Review of
    Economic Studies 91, 2024). Each test uses the joint distribution under sign flips.
    """
    middle = ((low + high) / 2).T
    flipped = np.concatenate([signs @ middle for signs in sign_flips(low.shape[1], seed, 4000)])
    # Blocks of flips, (trials, flips), that fit a processor's cache.
    blocks = [np.ascontiguousarray(part.T) for part in np.array_split(flipped, -(-len(flipped) // _BLOCK))]
    complete = bool((low == high).all())
    p = np.ones(len(low))
    for at in np.flatnonzero(tested).tolist():
        others = np.flatnonzero(tested & ((low != low[at]).any(axis=1) | (high != high[at]).any(axis=1)))
        if not len(others):
            continue
        min_gains, max_gains = low[others] - high[at], high[others] - low[at]
        max_norms = np.sqrt(np.maximum(min_gains**2, max_gains**2).sum(axis=1))
        observed = (min_gains.sum(axis=1) / np.maximum(max_norms, 1e-300)).max()
        if observed <= 0:
            continue  # no other trial has a higher mean
        if complete:
            scaled = ((block[others] - block[at]) / max_norms[:, None] for block in blocks)
            p[at] = _fraction_reached(scaled, np.sqrt(low.shape[1]), observed)
            continue
        reached = flipped[:, others] - flipped[:, [at]]
        slack, norms = ((max_gains - min_gains) / 2).sum(axis=1), _min_norms(min_gains, max_gains)
        # An exhaustive list of sign patterns leaves out the mirror of each pattern, so both directions are counted.
        both = (_scaled(np.maximum(0, way + slack), norms, low.shape[1]).max(axis=1) for way in (reached, -reached))
        p[at] = np.mean([drawn >= observed - 1e-12 for drawn in both])
    return p


def _fraction_reached(blocks: Iterable[Floats], bound: float, observed: float) -> float:
    """The fraction of flips, in both directions, in which any other trial gains as much as observed.

    The blocks, (trials, flips), hold gains divided by their norms. Gives the same numbers as the general case, which
    also counts what missing judgments may hide, in a fraction of the time.
    """
    reached = count = 0
    for gains in blocks:
        for drawn in (gains.max(axis=0), -gains.min(axis=0)):
            reached += int((np.minimum(np.maximum(0, drawn), bound) >= observed - 1e-12).sum())
            count += len(drawn)
    return reached / count


def _min_norms(low: Floats, high: Floats) -> Floats:
    """The min Euclidean norm of any row between `low` and `high`, (rows,)."""
    nearest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    return np.asarray(np.sqrt((nearest**2).sum(axis=1)))


def _scaled(reached: Floats, norms: Floats, clusters: int) -> Floats:
    """Sums over norms, by column: 0 if both are 0, and at most the Cauchy-Schwarz bound, root of `clusters`."""
    bound = np.sqrt(clusters)
    found = np.divide(reached, norms, out=np.where(reached > 0, bound, 0.0), where=norms > 0)
    return np.asarray(np.minimum(found, bound))


def cross_validated(sums: Floats, sizes: Floats, *, seed: int) -> float:
    """The mean score, on held-out clusters, of the trial that is best on the other clusters.

    `sums` has shape (trials, clusters), `sizes` (clusters,). Uses ten folds of clusters (fewer if there are fewer
    clusters) in each of 200 random partitions. This removes selection bias, since no query scores a choice it took part
    in (Stone, JRSS B 36, 1974; Varma & Simon, BMC Bioinformatics 7, 2006).
    """
    count = len(sizes)
    folds = min(_FOLDS, count)
    rng = np.random.default_rng(seed)
    total = counts = 0.0
    for _ in range(_PARTITIONS):
        # One row per fold, 1 if the cluster is held out.
        held = (rng.permutation(count) % folds == np.arange(folds)[:, None]).astype(np.float64)
        scored, counted = held @ sums.T, held @ sizes
        # Rounded, so that the first of tied trials is chosen despite floating-point noise, as on all queries.
        chosen = np.round((sums.sum(axis=1) - scored) / (sizes.sum() - counted)[:, None], 9).argmax(axis=1)
        total += float(scored[np.arange(folds), chosen].sum())
        counts += float(counted.sum())
    return total / counts
