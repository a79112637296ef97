"""Choosing the best trial: probabilities, the trials not separable from it, and its corrected score."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.evaluation.stats import best_of
from harness.evaluation.stats.choice import _min_norms, _not_beaten, _scaled, cross_validated
from harness.evaluation.stats.signflips import sign_flips

ONES = np.ones(30)


def chosen(scores: np.ndarray, seed: int = 0):  # type: ignore[no-untyped-def]
    return best_of(scores, scores, np.ones(scores.shape[1]), seed=seed)


def test_a_trial_that_is_always_better() -> None:
    """It is the best with probability 1, all others are excluded, and there is no selection bias."""
    base = np.random.default_rng(0).random(30)
    found = chosen(np.array([base, base + 0.3, base - 0.1]))
    assert (found.best, found.p_best.tolist()) == (1, [0.0, 1.0, 0.0])
    assert (found.p_value > 0.05).tolist() == [False, True, False]
    assert found.corrected == pytest.approx(base.mean() + 0.3)


def test_equal_trials_share_the_probability() -> None:
    """Two equal trials have one half each, and neither is excluded."""
    base = np.random.default_rng(0).random(30)
    found = chosen(np.array([base, base]))
    assert found.p_best.tolist() == [0.5, 0.5]
    assert (found.p_value == 1).all()


def test_floating_point_noise_does_not_choose() -> None:
    """0.1 + 0.2 is no better than 0.3: the two share the probability of being the best."""
    assert chosen(np.array([[0.1 + 0.2] * 30, [0.3] * 30])).p_best.tolist() == [0.5, 0.5]


def test_a_single_trial() -> None:
    """Without a choice there is no selection bias."""
    found = chosen(np.full((1, 30), 0.4))
    assert (found.best, found.p_best[0], found.p_value[0], found.corrected) == (0, 1.0, 1.0, pytest.approx(0.4))


def test_probabilities_equal_counts() -> None:
    """The counts over resamples drawn one by one with numpy, to a percent."""
    scores = np.random.default_rng(3).random((4, 25))
    rng = np.random.default_rng(8)
    counts = np.zeros(4)
    for _ in range(20_000):
        counts[scores[:, rng.integers(0, 25, 25)].mean(axis=1).argmax()] += 1
    assert chosen(scores).p_best == pytest.approx(counts / 20_000, abs=0.012)


def test_missing_judgments_choose_by_the_min_and_exclude_by_the_max() -> None:
    """A trial that might have any score is not chosen, not excluded, and does not keep others."""
    base = np.random.default_rng(0).random(30) * 0.1 + 0.4
    low, high = np.array([base, base * 0, base - 0.2]), np.array([base, base * 0 + 1, base - 0.2])
    found = best_of(low, high, ONES, seed=0, tested=np.array([True, False, True]))
    assert found.best == 0
    assert (found.p_value > 0.05).tolist() == [True, True, False]


def test_the_best_has_the_highest_sum() -> None:
    """Not the highest single value."""
    assert chosen(np.array([[0.0, 0.9, 0.0], [0.4, 0.4, 0.4]])).best == 1


def test_one_cluster_excludes_nothing() -> None:
    """The best has the highest sum; one cluster gives no test and no corrected mean."""
    found = best_of(np.array([[1.0], [3.0], [2.0]]), np.array([[4.0], [3.0], [2.0]]), np.ones(1), seed=0)
    assert (found.best, found.p_best.tolist(), found.p_value.tolist()) == (1, [0.0, 1.0, 0.0], [1.0] * 3)
    assert np.isnan(found.corrected)


def test_missing_judgments_earn_nothing() -> None:
    """Known scores of 0.5 against unknown ones from 0 to 1: the known trial is the best in all resamples and folds."""
    known, lowest, highest = np.full(12, 0.5), np.zeros(12), np.ones(12)
    found = best_of(np.array([known, lowest]), np.array([known, highest]), np.ones(12), seed=0)
    assert (found.best, found.p_best.tolist(), found.corrected) == (0, [1.0, 0.0], 0.5)
    assert found.p_value.tolist() == [1.0, 1.0]


def beaten(better: tuple[list[float], list[float]], worse: tuple[list[float], list[float]]) -> float:
    """p of the worse of two trials, each with the min and max scores of six queries, in 64ths."""
    low, high = (np.array(side) for side in zip(better, worse, strict=True))
    return float(best_of(low, high, np.ones(6), seed=0).p_value[1]) * 64


NONE, FIVE, SIX = [0.0] * 6, [1.0] * 5 + [0.0], [1.0] * 6


def test_p_of_the_worse_trial_by_hand() -> None:
    """Better on six queries of six: one of 64 sign patterns does as well. On five, equal on one: two; on one: half."""
    assert beaten((SIX, SIX), (NONE, NONE)) == 1
    assert beaten((FIVE, FIVE), (NONE, NONE)) == 2
    assert beaten(([1.0] + [0.0] * 5,) * 2, (NONE, NONE)) == 32
    assert beaten((SIX, SIX), (SIX, SIX)) == 64
    assert beaten((SIX, SIX), ([1.0] * 5 + [2.0], [1.0] * 5 + [2.0])) == 64


def test_p_of_the_worse_trial_with_missing_judgments_by_hand() -> None:
    """Better on five queries; on the sixth a score is missing, of the better or of the worse trial.

    Between 0 and 1: the min observed statistic is 5 / root of 6. Patterns reach up to 6 / root of 5, with the sixth
    flipped 5 / root of 5, with one of the others flipped 4 / root of 5, which is less. Between 0 and 3: the min
    observed statistic is 5 / root of 14 = 1.34. The sum is 5 + 1.5, or up to 1.5 more; over root of 5, a sum of 3
    reaches 1.34: with up to two of the five flipped, or up to one and the sixth.
    """
    assert beaten((FIVE, SIX), (NONE, NONE)) == 2
    assert beaten((SIX, SIX), (NONE, [0.0] * 5 + [1.0])) == 2
    assert beaten((FIVE, [1.0] * 5 + [3.0]), (NONE, NONE)) == 1 + 5 + 10 + 1 + 5
    assert beaten(([1.0] * 5 + [3.0],) * 2, (NONE, [0.0] * 5 + [3.0])) == 1 + 5 + 10 + 1 + 5


def test_asymmetric_bounds_by_hand() -> None:
    """Better by 1 on five queries, on the sixth by -1.5 to 0: the min observed statistic is 3.5 / root of (5 + 2.25) =
    1.3. Over root of 5, sums of at least 2.9 reach it: with up to one of the five flipped, and any sign of the sixth.
    """
    assert beaten(([1.0] * 5 + [-1.5], FIVE), (NONE, NONE)) == 2 * (1 + 5)


def test_a_trial_that_may_be_as_good_is_not_excluded() -> None:
    """Its max sum equals the min sum of the other: 6."""
    assert beaten((SIX, SIX), (NONE, [0.0] * 5 + [6.0])) == 64
    assert beaten(([1.0] * 5 + [-5.0], SIX), (NONE, NONE)) == 64


def test_a_trial_with_unknown_scores_keeps_others() -> None:
    """Another trial is beaten on six of six queries. A trial that may gain up to 1 on each query reaches any statistic,
    except in the one pattern with all flipped; a trial that may lose up to 1 on each, except in the pattern with none
    flipped, which the better trial reaches."""
    low, high = np.array([SIX, NONE, NONE]), np.array([SIX, NONE, SIX])
    assert best_of(low, high, np.ones(6), seed=0).p_value[1] * 64 == 63
    assert best_of(low - [[0], [0], [1]], high - [[0], [0], [1]], np.ones(6), seed=0).p_value[1] * 64 == 64
    # Unknown only on the sixth query: in the half of the patterns in which that query is, or is not, flipped.
    high[2, :5] = 0
    assert best_of(low, high, np.ones(6), seed=0).p_value[1] * 64 == 32
    assert best_of(low - (high - low), low, np.ones(6), seed=0).p_value[1] * 64 == 33
    tested = np.array([True, True, False])
    assert best_of(low, high, np.ones(6), seed=0, tested=tested).p_value.tolist() == [1.0, 1 / 64, 1.0]


def test_min_norms_by_hand() -> None:
    """Between 3 and 5, -5 and -4, and around 0: at least 3, 4 and 0, with norm 5."""
    low, high = np.array([[3.0, -5, -1, 0, -2, -0.5]]), np.array([[5.0, -4, 2, 7, 0, 0.5]])
    assert _min_norms(low, high)[0] == _min_norms(-high, -low)[0] == 5


def test_held_out_clusters_by_hand() -> None:
    """Two trials, each with all its score in one of two clusters: the one chosen on one cluster has 0 on the other."""
    assert cross_validated(np.eye(2), np.ones(2), seed=0) == 0
    assert best_of(np.eye(2), np.eye(2), np.ones(2), seed=0).corrected == 0
    assert cross_validated(np.array([[2.0, 1.0]]), np.array([1.0, 3.0]), seed=0) == pytest.approx(0.75)


def test_twenty_clusters_are_held_out_in_pairs() -> None:
    """Two trials, each with a score of 1 on its half of the clusters. Of the pairs held out, 10 in 19 have one cluster
    of each half: the first trial is chosen and scores 1 of 2. Otherwise the wrong trial is chosen and scores 0."""
    first = np.arange(20) < 10
    found = cross_validated(np.array([first, ~first], float), np.ones(20), seed=0)
    assert found == pytest.approx(5 / 19, abs=0.03)


def test_floating_point_noise_does_not_change_the_corrected_mean() -> None:
    """Scores in thirds often tie on the folds that choose; the first of the tied trials is chosen nevertheless."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        sums = rng.integers(0, 4, (6, 30)) / 3
        noisy = sums + rng.choice([-1e-13, 1e-13], sums.shape)
        plain, moved = (cross_validated(one, np.ones(30), seed=seed) for one in (sums, noisy))
        assert moved == pytest.approx(plain, abs=1e-9)


@settings(max_examples=60)
@given(st.integers(2, 12), st.integers(2, 20), st.integers(0, 10_000), st.booleans())
def test_complete_scores_take_the_short_way(trials: int, clusters: int, seed: int, ties: bool) -> None:
    """Without missing judgments the p-values are those of the general formula, ties and equal trials included."""
    drawn = np.random.default_rng(seed).normal(size=(trials, clusters))
    sums = np.round(drawn, 0 if ties else 12)
    sums[-1] = sums[0]
    found = _not_beaten(sums, sums, np.ones(trials, bool), seed)
    flipped = np.concatenate([signs @ sums.T for signs in sign_flips(clusters, seed, 4000)])
    for at in range(trials):
        others = [n for n in range(trials) if (sums[n] != sums[at]).any()]
        gains = sums[others] - sums[at]
        norms = np.sqrt((gains**2).sum(axis=1))
        observed = max((gain.sum() / norm for gain, norm in zip(gains, norms, strict=True)), default=0.0)
        if observed <= 0:
            assert found[at] == 1
            continue
        reached = flipped[:, others] - flipped[:, [at]]
        both = [_scaled(np.maximum(0, way), norms, clusters).max(axis=1) for way in (reached, -reached)]
        assert found[at] == np.mean([one >= observed - 1e-12 for one in both])
