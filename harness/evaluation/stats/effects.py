"""What each factor of a grid does to a metric: main effects and two-way interactions, with clustered intervals."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.evaluation.stats.clusters import FEWEST_CLUSTERS, Floats, cluster_sums
from harness.evaluation.stats.signflips import paired_differences


class Effect(NamedTuple):
    """How far the trials with these levels of these factors lie from what the rest of the model expects, on average.

    One factor and level: a main effect, against the average of all levels. Two: what their meeting adds to both.
    """

    factors: tuple[str, ...]
    levels: tuple[str, ...]
    value: float
    low: float
    high: float


def factor_effects(
    scores: Floats, factors: Mapping[str, Sequence[str]], clusters: npt.ArrayLike, *, seed: int
) -> list[Effect]:
    """Main effects of every factor, and the interactions of every two whose levels all meet.

    `scores` has shape (trials, queries); each factor names its level in every trial. Effects are least-squares
    estimates under sum-to-zero coding (Searle, Linear Models, 1971, section 4.3), so that every level of the other
    factors weighs the same in grids that are not full products. They are linear in the trials' scores, so each query
    has effects of its own; intervals are those of `paired_differences` by cluster, for all main effects at once and for
    all interactions at once. A factor whose effect the grid cannot tell from another's is left out.
    """
    model = _Model(len(scores))
    for name, levels in factors.items():
        model.add((name,), _coded(levels))
    mains = {term.factors[0]: term.coding for term in model.terms}
    for one, two in combinations(mains, 2):
        met = set(zip(factors[one], factors[two], strict=True))
        if len(met) == len(set(factors[one])) * len(set(factors[two])):
            model.add((one, two), _crossed(mains[one], mains[two]))
    if not model.terms:
        return []
    per_query = model.weights() @ scores
    sums, sizes = cluster_sums(per_query, clusters)
    labels = [(term.factors, levels) for term in model.terms for levels in term.coding.levels]
    single = np.array([len(factors) == 1 for factors, _ in labels])
    low, high = np.full(len(labels), np.nan), np.full(len(labels), np.nan)
    for family in (single, ~single):
        if family.any() and len(sizes) >= FEWEST_CLUSTERS:
            found = paired_differences(sums[family], sums[family], sizes, seed=seed)
            low[family], high[family] = found.low, found.high
    unbounded = ~(np.isfinite(low) & np.isfinite(high))
    low[unbounded] = high[unbounded] = np.nan
    rows = zip(labels, per_query.mean(axis=1).tolist(), low.tolist(), high.tolist(), strict=True)
    return [Effect(*label, *numbers) for label, *numbers in rows]


class _Coding(NamedTuple):
    """A term's columns (trials, free), its levels, and `basis` (levels, free), the effects of all levels in these."""

    columns: Floats
    levels: list[tuple[str, ...]]
    basis: Floats


class _Term(NamedTuple):
    factors: tuple[str, ...]
    coding: _Coding
    place: int


class _Model:
    """A linear model that grows by the terms that the trials can tell from those it has."""

    def __init__(self, trials: int) -> None:
        self.terms: list[_Term] = []
        self._design: Floats = np.ones((trials, 1))

    def add(self, factors: tuple[str, ...], coding: _Coding) -> None:
        grown = np.hstack([self._design, coding.columns])
        if coding.columns.shape[1] and np.linalg.matrix_rank(grown) == grown.shape[1]:
            self.terms.append(_Term(factors, coding, self._design.shape[1]))
            self._design = grown

    def weights(self) -> Floats:
        """What each trial weighs in each effect, shape (effects, trials)."""
        solved = np.linalg.pinv(self._design)
        free = (solved[term.place : term.place + term.coding.basis.shape[1]] for term in self.terms)
        return np.concatenate([term.coding.basis @ rows for term, rows in zip(self.terms, free, strict=True)])


def _coded(levels: Sequence[str]) -> _Coding:
    """Sum-to-zero columns: each level but the last has one, the last is minus all of them."""
    distinct = list(dict.fromkeys(levels))
    basis = np.vstack([np.eye(len(distinct) - 1), -np.ones(len(distinct) - 1)])
    return _Coding(basis[[distinct.index(level) for level in levels]], [(level,) for level in distinct], basis)


def _crossed(one: _Coding, two: _Coding) -> _Coding:
    """The products of two factors' columns."""
    columns = np.einsum("ti,tj->tij", one.columns, two.columns).reshape(len(one.columns), -1)
    levels = [(*first, *second) for first in one.levels for second in two.levels]
    return _Coding(columns, levels, np.asarray(np.kron(one.basis, two.basis), np.float64))
