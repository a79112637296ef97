"""Choosing the best trial of a grid: which might be it, how surely, and how much its score owes to the choice."""

from typing import NamedTuple

import numpy as np

from harness.evaluation.stats.bootstrap import bootstrap_means
from harness.evaluation.stats.clusters import Flags, Floats
from harness.evaluation.stats.signflips import sign_flips

_FOLDS = 10
_PARTITIONS = 200


class Choice(NamedTuple):
    """The trial with the greatest mean, `best`, and what its being chosen is worth.

    `p_best` is each trial's share of resamples in which it has the greatest mean; `p_value` of a trial belongs to the
    hypothesis that none is better than it, and those with a `p_value` above 1 - level are not separable from the best.
    `corrected` is the mean to expect of a trial chosen in this way on queries it was not chosen by.
    """

    best: int
    p_best: Floats
    p_value: Floats
    corrected: float


def best_of(low: Floats, high: Floats, sizes: Floats, *, seed: int, tested: Flags | None = None) -> Choice:
    """Choose among trials by sums of scores by cluster, `low` and `high` of shape (trials, clusters).

    They differ where judgments are missing: a trial is then chosen by the least it can have, and excluded by the most.
    What is not `tested`, as too much is missing, is not chosen, neither excluded nor a reason to exclude others; where
    nothing is tested, all are chosen from.
    """
    # Noise in the last bits of scores is no difference.
    low, high = np.round(low, 12), np.round(high, 12)
    among = np.ones(len(low), bool) if tested is None or not tested.any() else tested
    best = int(np.argmax(np.where(among, low.sum(axis=1), -np.inf)))
    p_best = np.zeros(len(low))
    if len(sizes) < 2:
        p_best[best] = 1.0
        return Choice(best, p_best, np.ones(len(low)), float("nan"))
    p_best[among] = _share_best(bootstrap_means(low[among], sizes, seed=seed))
    p_value = _not_beaten(low, high, np.ones(len(low), bool) if tested is None else tested, seed)
    return Choice(best, p_best, p_value, cross_validated(low[among], sizes, seed=seed))


def _share_best(means: Floats) -> Floats:
    """The share of resamples in which each trial has the greatest mean; what several share is split among them."""
    top = means >= means.max(axis=1, keepdims=True) - 1e-12
    return np.asarray((top / top.sum(axis=1, keepdims=True)).mean(axis=0))


def _not_beaten(low: Floats, high: Floats, tested: Flags, seed: int) -> Floats:
    """For each trial, the p of no other being better: the greatest one-sided statistic of all against it.

    The trials that are not rejected hold the best with the chosen confidence, whichever it is: a trial that is the
    best is rejected no more often than the level says (Hsu, Annals of Statistics 9, 1981; Mogstad, Romano, Shaikh &
    Wilhelm, Review of Economic Studies 91, 2024). Each test uses the joint distribution under sign flips.
    """
    middle = ((low + high) / 2).T
    flipped = np.concatenate([signs @ middle for signs in sign_flips(low.shape[1], seed, 4000)])
    p = np.ones(len(low))
    for at in np.flatnonzero(tested).tolist():
        others = np.flatnonzero(tested & ((low != low[at]).any(axis=1) | (high != high[at]).any(axis=1)))
        if not len(others):
            continue
        gains, most = low[others] - high[at], high[others] - low[at]
        widest = np.sqrt(np.maximum(gains**2, most**2).sum(axis=1))
        observed = (gains.sum(axis=1) / np.maximum(widest, 1e-300)).max()
        if observed <= 0:
            continue  # none has a greater mean
        reached = flipped[:, others] - flipped[:, [at]]
        slack, norms = ((most - gains) / 2).sum(axis=1), _least_norms(gains, most)
        # Sign patterns come without their mirrors where all are gone through: both ways count.
        both = (_scaled(np.maximum(0, way + slack), norms, low.shape[1]).max(axis=1) for way in (reached, -reached))
        p[at] = np.mean([drawn >= observed - 1e-12 for drawn in both])
    return p


def _least_norms(low: Floats, high: Floats) -> Floats:
    """The least root of a sum of squares of what lies between `low` and `high`, by row."""
    nearest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    return np.asarray(np.sqrt((nearest**2).sum(axis=1)))


def _scaled(reached: Floats, norms: Floats, clusters: int) -> Floats:
    """Sums over norms, by column: 0 where both are 0, and at most what Cauchy and Schwarz allow."""
    most = np.sqrt(clusters)
    found = np.divide(reached, norms, out=np.where(reached > 0, most, 0.0), where=norms > 0)
    return np.asarray(np.minimum(found, most))


def cross_validated(sums: Floats, sizes: Floats, *, seed: int) -> float:
    """The mean, on clusters held out, of the trial that is best on the others.

    Ten folds of clusters (as many as there are, if fewer), over 200 random partitions. What a trial gains by being
    chosen on the same queries is gone, as no query scores a choice it had a part in (Stone, JRSS B 36, 1974; Varma &
    Simon, BMC Bioinformatics 7, 2006).
    """
    count = len(sizes)
    folds = min(_FOLDS, count)
    rng = np.random.default_rng(seed)
    total = counts = 0.0
    for _ in range(_PARTITIONS):
        # A row per fold, 1 where the cluster is held out.
        held = (rng.permutation(count) % folds == np.arange(folds)[:, None]).astype(np.float64)
        scored, counted = held @ sums.T, held @ sizes
        # Of trials that tie the first is chosen, as on all queries, whatever the last bits say.
        chosen = np.round((sums.sum(axis=1) - scored) / (sizes.sum() - counted)[:, None], 9).argmax(axis=1)
        total += float(scored[np.arange(folds), chosen].sum())
        counts += float(counted.sum())
    return total / counts
