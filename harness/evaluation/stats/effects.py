"""Effects of the factors of a grid on a metric: main effects and two-way interactions, with clustered intervals."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.evaluation.stats.clusters import FEWEST_CLUSTERS, Floats, cluster_sums
from harness.evaluation.stats.signflips import Sums, paired_differences


class Effect(NamedTuple):
    """The average difference of trials with these levels of these factors from what the rest of the model predicts.

    With one factor and level, a main effect, relative to the mean of all levels; with two, their interaction, which
    comes on top of both main effects. `low` and `high` bound its interval; NaN if there is none.
    """

    factors: tuple[str, ...]
    levels: tuple[str, ...]
    value: float
    low: float
    high: float


def factor_effects(
    scores: Floats, factors: Mapping[str, Sequence[str]], clusters: npt.ArrayLike, *, seed: int
) -> list[Effect]:
    """Main effects of all factors, and interactions of all pairs of factors whose levels are fully crossed.

    `scores` has shape (trials, queries); each factor names its level in every trial. Effects are least-squares
    estimates under sum-to-zero coding (Searle, Linear Models, 1971, section 4.3), so all levels of the other factors
    have equal weight even if the grid is not a full product. They are linear in the trials' scores, so each query has
    its own effects. Intervals are those of `paired_differences` by cluster: simultaneous over all main effects, and
    over all interactions. A factor whose effect is confounded with an earlier factor is left out.
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
            found = paired_differences(Sums(sums[family], sums[family], sizes), seed=seed)
            low[family], high[family] = found.low, found.high
    unbounded = ~(np.isfinite(low) & np.isfinite(high))
    low[unbounded] = high[unbounded] = np.nan
    rows = zip(labels, per_query.mean(axis=1).tolist(), low.tolist(), high.tolist(), strict=True)
    return [Effect(*label, *numbers) for label, *numbers in rows]


class _Coding(NamedTuple):
    """A term's columns (trials, free), its levels, and `basis` (levels, free), which maps coefficients to effects."""

    columns: Floats
    levels: list[tuple[str, ...]]
    basis: Floats


class _Term(NamedTuple):
    factors: tuple[str, ...]
    coding: _Coding
    place: int


class _Model:
    """A linear model; `add` keeps a term only if the trials can separate it from the terms already there."""

    def __init__(self, trials: int) -> None:
        self.terms: list[_Term] = []
        self._design: Floats = np.ones((trials, 1))

    def add(self, factors: tuple[str, ...], coding: _Coding) -> None:
        grown = np.hstack([self._design, coding.columns])
        if coding.columns.shape[1] and np.linalg.matrix_rank(grown) == grown.shape[1]:
            self.terms.append(_Term(factors, coding, self._design.shape[1]))
            self._design = grown

    def weights(self) -> Floats:
        """The weight of each trial in each effect, shape (effects, trials)."""
        solved = np.linalg.pinv(self._design)
        free = (solved[term.place : term.place + term.coding.basis.shape[1]] for term in self.terms)
        return np.concatenate([term.coding.basis @ rows for term, rows in zip(self.terms, free, strict=True)])


def _coded(levels: Sequence[str]) -> _Coding:
    """Sum-to-zero coding: one column for each level except the last, which is minus their sum."""
    distinct = list(dict.fromkeys(levels))
    basis = np.vstack([np.eye(len(distinct) - 1), -np.ones(len(distinct) - 1)])
    return _Coding(basis[[distinct.index(level) for level in levels]], [(level,) for level in distinct], basis)


def _crossed(one: _Coding, two: _Coding) -> _Coding:
    """The products of two factors' columns."""
    columns = np.einsum("ti,tj->tij", one.columns, two.columns).reshape(len(one.columns), -1)
    levels = [(*first, *second) for first in one.levels for second in two.levels]
    return _Coding(columns, levels, np.asarray(np.kron(one.basis, two.basis), np.float64))
