"""Choosing the best trial: chances, what cannot be separated from it, and the score to expect of it."""

import numpy as np
import pytest

from harness.stats import best_of

ONES = np.ones(30)


def chosen(scores: np.ndarray, seed: int = 0):  # type: ignore[no-untyped-def]
    return best_of(scores, scores, np.ones(scores.shape[1]), seed=seed)


def test_one_that_is_always_better() -> None:
    """It is the best for sure, alone, and owes nothing to having been chosen."""
    base = np.random.default_rng(0).random(30)
    found = chosen(np.array([base, base + 0.3, base - 0.1]))
    assert (found.best, found.p_best.tolist()) == (1, [0.0, 1.0, 0.0])
    assert (found.p_value > 0.05).tolist() == [False, True, False]
    assert found.corrected == pytest.approx(base.mean() + 0.3)


def test_twins_share_the_chance() -> None:
    """Two equal trials: one half each, neither excluded."""
    base = np.random.default_rng(0).random(30)
    found = chosen(np.array([base, base]))
    assert found.p_best.tolist() == [0.5, 0.5]
    assert (found.p_value == 1).all()


def test_a_single_trial() -> None:
    """Nothing to choose from, nothing gained by it."""
    found = chosen(np.full((1, 30), 0.4))
    assert (found.best, found.p_best[0], found.p_value[0], found.corrected) == (0, 1.0, 1.0, pytest.approx(0.4))


def test_chances_are_those_of_counting() -> None:
    """Over resamples drawn one by one with numpy, to a percent."""
    scores = np.random.default_rng(3).random((4, 25))
    rng = np.random.default_rng(8)
    counts = np.zeros(4)
    for _ in range(20_000):
        counts[scores[:, rng.integers(0, 25, 25)].mean(axis=1).argmax()] += 1
    assert chosen(scores).p_best == pytest.approx(counts / 20_000, abs=0.012)


def test_missing_judgments_choose_by_the_least_and_exclude_by_the_most() -> None:
    """A trial that might be worth anything is not chosen, not excluded, and no reason to keep others."""
    base = np.random.default_rng(0).random(30) * 0.1 + 0.4
    low, high = np.array([base, base * 0, base - 0.2]), np.array([base, base * 0 + 1, base - 0.2])
    found = best_of(low, high, ONES, seed=0, tested=np.array([True, False, True]))
    assert found.best == 0
    assert (found.p_value > 0.05).tolist() == [True, True, False]
