"""Effects of factors: by hand on a full grid, against statsmodels on an incomplete one."""

import numpy as np
import pytest
import statsmodels.formula.api as smf
from pandas import DataFrame

from harness.evaluation.stats import Effect, factor_effects

CLUSTERS = range(12)


def values(found: list[Effect]) -> dict[tuple[str, ...], float]:
    return {(*effect.factors, *effect.levels): round(effect.value, 9) for effect in found}


def test_a_full_grid_by_hand() -> None:
    """Means 1, 3 and 5, 11: b adds 3 to the overall mean, y adds 2, and their interaction 1."""
    factors = {"c": ["a", "a", "b", "b"], "r": ["x", "y", "x", "y"]}
    means = np.array([1.0, 3.0, 5.0, 11.0])
    found = values(factor_effects(means[:, None].repeat(12, axis=1), factors, CLUSTERS, seed=0))
    assert found == {
        ("c", "a"): -3, ("c", "b"): 3, ("r", "x"): -2, ("r", "y"): 2,
        ("c", "r", "a", "x"): 1, ("c", "r", "a", "y"): -1, ("c", "r", "b", "x"): -1, ("c", "r", "b", "y"): 1,
    }  # fmt: skip


def test_intervals_are_of_per_query_effects() -> None:
    """The effect is half the difference of two trials, with the interval of half the differences."""
    scores = np.random.default_rng(0).random((2, 12))
    one, two = factor_effects(scores, {"k": ["5", "10"]}, CLUSTERS, seed=0)
    assert two.value == pytest.approx((scores[1] - scores[0]).mean() / 2)
    assert (one.low, one.high) == (pytest.approx(-two.high), pytest.approx(-two.low))


def test_an_incomplete_grid_is_fitted_by_least_squares() -> None:
    """Five of six combinations: the main effects that statsmodels fits to the means, and no interaction."""
    factors = {"c": ["a", "a", "b", "b", "b"], "r": ["x", "y", "x", "y", "z"]}
    means = np.array([0.3, 0.5, 0.45, 0.7, 0.2])
    found = values(factor_effects(means[:, None].repeat(12, axis=1), factors, CLUSTERS, seed=0))
    fit = smf.ols("m ~ C(c, Sum) + C(r, Sum)", DataFrame({"m": means, **factors})).fit()
    assert found["c", "a"] == pytest.approx(fit.params["C(c, Sum)[S.a]"])
    assert found["r", "y"] == pytest.approx(fit.params["C(r, Sum)[S.y]"])
    assert len(found) == 5


def test_a_confounded_factor_is_left_out() -> None:
    """Two factors with the same levels are confounded; the first is kept. A factor with one level has no effect."""
    scores = np.random.default_rng(0).random((2, 12))
    found = factor_effects(scores, {"fixed": ["q", "q"], "a": ["1", "2"], "b": ["u", "v"]}, CLUSTERS, seed=0)
    assert [effect.factors for effect in found] == [("a",), ("a",)]
    assert factor_effects(scores[:1], {"a": ["1"]}, CLUSTERS, seed=0) == []


def test_interactions_have_intervals_too() -> None:
    """All effects, main effects and interactions, have narrow intervals around their values."""
    noise = np.random.default_rng(0).normal(0, 0.01, (4, 12))
    factors = {"c": ["a", "a", "b", "b"], "r": ["x", "y", "x", "y"]}
    found = factor_effects(np.array([[1.0], [3.0], [5.0], [11.0]]) + noise, factors, CLUSTERS, seed=0)
    assert [(effect.low < effect.value < effect.high, effect.high - effect.low < 0.1) for effect in found] == [
        (True, True)
    ] * 8


@pytest.mark.parametrize("clusters", [1, 4, 5])
def test_too_few_clusters_give_no_bounds(clusters: int) -> None:
    """NaN on both sides, never infinite; with six clusters there are bounds."""
    scores = np.random.default_rng(0).random((2, 12))
    for effect in factor_effects(scores, {"k": ["5", "10"]}, np.arange(12) % clusters, seed=0):
        assert np.isnan([effect.low, effect.high]).all()
    assert all(effect.low < effect.high for effect in factor_effects(scores, {"k": "ab"}, np.arange(12) % 6, seed=0))
