"""Queries needed, and the effect of repeated judgments on the standard error."""

import numpy as np
import pytest
from statsmodels.stats.power import NormalIndPower

from harness.evaluation.stats import normal_critical, queries_needed, variance_of_repeats


def test_queries_needed_by_hand_and_statsmodels() -> None:
    """Differences with standard deviation 0.3 over 100 queries: (1.96 + 0.84)^2 (0.3 / 0.03)^2, which is 785."""
    found = queries_needed(np.array([0.3 / 10, 0.0]), 100, 0.03, critical=1.959964)
    expected = NormalIndPower(ddof=0).solve_power(effect_size=0.1, alpha=0.05, power=0.8, ratio=0)
    assert found[0] == np.ceil(expected) == 785
    assert np.isnan(found[1])


def test_the_number_needed_has_the_power() -> None:
    """In 400 simulations with the number of queries needed, about 80 % detect the difference."""
    rng = np.random.default_rng(1)
    needed = int(queries_needed(np.array([0.3 / 10]), 100, 0.05, critical=1.96)[0])
    seen = 0
    for _ in range(400):
        values = rng.normal(0.05, 0.3, needed)
        seen += abs(values.mean()) / (values.std(ddof=1) / np.sqrt(needed)) > 1.96
    assert seen / 400 == pytest.approx(0.8, abs=0.06)


def test_the_critical_value_of_several_tests() -> None:
    """One, or several that are equal: 1.96. Independent ones: Sidak's. Against one control: Dunnett's tables."""
    chance, sizes = np.random.default_rng(0), np.ones(20_000)
    noise = chance.normal(size=(6, 20_000))
    assert normal_critical(noise[:1], sizes, seed=0) == pytest.approx(1.959964, abs=1e-5)
    assert normal_critical(np.vstack([noise[0], 2 * noise[0], -noise[0], noise[0] * 0]), sizes, seed=0) == (
        pytest.approx(1.96, abs=0.03)
    )
    for count, expected in ((2, 2.236), (5, 2.569)):
        assert normal_critical(noise[:count], sizes, seed=0) == pytest.approx(expected, abs=0.03)
    for count, expected in ((2, 2.21), (3, 2.35), (5, 2.51)):
        against_one = noise[1 : count + 1] - noise[0]
        assert normal_critical(against_one, sizes, seed=0) == pytest.approx(expected, abs=0.03)


def test_the_critical_value_does_not_depend_on_the_number_of_clusters() -> None:
    """It is that of many queries: with few clusters, the statistic of the test itself is bounded, and smaller."""
    noise = np.random.default_rng(1).normal(size=(3, 8))
    orthogonal = np.linalg.qr((noise - noise.mean(axis=1, keepdims=True)).T)[0].T
    assert normal_critical(orthogonal, np.ones(8), seed=0) == pytest.approx(2.388, abs=0.03)


def test_a_judge_without_variance() -> None:
    """All variance is between queries; twice the queries divide the error by root 2, repeats change nothing."""
    found = variance_of_repeats(np.array([[0.0, 0.0], [1.0, 1.0], [0.5, 0.5]]), swapped=np.array([0.0, 1.0, 0.5]))
    assert (found.query, found.repeat, found.order) == (0.25, 0.0, 0.0)
    assert found.more_repeats == found.error == pytest.approx(np.sqrt(0.25 / 3))
    assert found.more_queries == pytest.approx(found.error / np.sqrt(2))


def test_simulated_variance_components_are_recovered() -> None:
    """2,000 queries with known components: 0.04 between queries, 0.01 between repeats, 0.0225 by order."""
    rng = np.random.default_rng(0)
    truth, order = rng.normal(0, 0.2, 2000), rng.normal(0, 0.15, (2, 2000))
    repeats = truth[:, None] + order[0][:, None] + rng.normal(0, 0.1, (2000, 3))
    found = variance_of_repeats(repeats, swapped=truth + order[1] + rng.normal(0, 0.1, 2000))
    assert found.repeat == pytest.approx(0.01, rel=0.05)
    assert found.order == pytest.approx(0.0225, rel=0.12)
    assert found.query + found.repeat == pytest.approx(0.04 + 0.0225 + 0.01, rel=0.06)


def test_one_repeat_is_rejected() -> None:
    """It has no variance."""
    with pytest.raises(ValueError, match="two repeats"):
        variance_of_repeats(np.zeros((5, 1)))


def test_variance_components_by_hand() -> None:
    """Two queries of two repeats, 1 and 1, 4 and 6: 1 between repeats, the means 1 and 5 vary by 8, of which 1 / 2 is
    the repeats'. In reverse order they change by 2: half of 4 - 1 * (1 + 1 / 2) is order."""
    values = np.array([[1.0, 1.0], [4.0, 6.0]])
    found = variance_of_repeats(values, swapped=np.array([3.0, 3.0]))
    assert (found.repeat, found.query, found.order, found.error) == (1, 7.5, 1.25, 2)
    assert (found.more_queries, found.more_repeats) == (pytest.approx(np.sqrt(8 / 4)), pytest.approx(np.sqrt(7.75 / 2)))
    assert np.isnan(variance_of_repeats(values).order)
    assert variance_of_repeats(values, swapped=np.array([1.0, 5.0])).order == 0


def test_variance_components_are_not_negative() -> None:
    """Queries with the same mean, though the repeats alone would make the means vary."""
    found = variance_of_repeats(np.array([[0.0, 2.0], [0.0, 2.0], [0.0, 2.0]]))
    assert (found.query, found.repeat, found.error) == (0, 2, pytest.approx(np.sqrt(1 / 3)))
    with pytest.raises(ValueError, match="two queries"):
        variance_of_repeats(np.zeros((1, 5)))
