"""The claims of the statistics, tested by simulations with a known truth: small here, larger with `-m long`.

Each world is a simulated data set like a retrieval grid: forty strongly correlated trials, questions that share
documents, scores that are 0 or 1, or skewed.
"""

import numpy as np
import pytest

from harness.evaluation.stats import Floats, Sums, best_of, cluster_bootstrap, cluster_sums, paired_differences

SIZES = [pytest.param(150, id="small"), pytest.param(2000, id="large", marks=pytest.mark.long)]


def world(rng: np.random.Generator, trials: int, clusters: int, each: int, *, binary: bool) -> tuple[Floats, Floats]:
    """Scores (trials, queries) of equally good trials, and the cluster of every query."""
    member = np.repeat(np.arange(clusters), each)
    shared = rng.normal(size=clusters)[member] + rng.normal(size=clusters * each)
    latent = 0.67 * shared + 0.32 * rng.normal(size=(trials, clusters * each))
    return (latent > -0.5).astype(float) if binary else np.exp(latent / 2), member


def tolerance(worlds: int, rate: float) -> float:
    """Three standard errors of a simulated rate."""
    return float(3 * np.sqrt(rate * (1 - rate) / worlds))


@pytest.mark.parametrize("worlds", SIZES)
@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("clusters", [20, 60])
def test_means_and_differences_are_covered(worlds: int, binary: bool, clusters: int) -> None:
    """95 % intervals of a mean, of one difference, and of all at once cover the truth in 93 to 97 % of simulations.

    Differences of 0 and 1 are mostly ties, which can only increase the coverage.
    """
    rng = np.random.default_rng(17)
    truth = _mean_of_many(binary)
    mean = one = every = 0
    for seed in range(worlds):
        scores, member = world(rng, 40, clusters, 3, binary=binary)
        found = cluster_bootstrap(scores[:1], member, seed=seed, resamples=1000)
        mean += found.low[0] <= truth <= found.high[0]
        alone = cluster_bootstrap(scores[1:2] - scores[0], member, seed=seed, resamples=1000)
        one += alone.low[0] <= 0 <= alone.high[0]
        sums, sizes = cluster_sums(scores[1:] - scores[0], member)
        family = paired_differences(Sums(sums, sums, sizes), seed=seed, flips=2000)
        every += bool((family.low <= 0).all() and (family.high >= 0).all())
    slack = tolerance(worlds, 0.95)
    assert 0.93 - slack <= mean / worlds <= 0.97 + slack
    assert 0.93 - slack <= one / worlds
    assert 0.93 - slack <= every / worlds
    if not binary:
        assert one / worlds <= 0.97 + slack
        assert every / worlds <= 0.97 + slack


def _mean_of_many(binary: bool) -> float:
    scores, _ = world(np.random.default_rng(99), 1, 200_000, 3, binary=binary)
    return float(scores.mean())


@pytest.mark.parametrize("worlds", SIZES)
@pytest.mark.parametrize("binary", [True, False])
def test_false_positives_among_forty_equal_trials(worlds: int, binary: bool) -> None:
    """Family-wise error is at most 5 % with strongly correlated trials; unadjusted tests err many times as often."""
    rng = np.random.default_rng(23)
    wrong = naive = 0
    for seed in range(worlds):
        scores, member = world(rng, 40, 40, 2, binary=binary)
        sums, sizes = cluster_sums(scores[1:] - scores[0], member)
        found = paired_differences(Sums(sums, sums, sizes), seed=seed, flips=2000)
        wrong += bool((found.adjusted <= 0.05).any())
        naive += bool((found.p <= 0.05).any())
    assert wrong / worlds <= 0.05 + tolerance(worlds, 0.05)
    assert naive / worlds > 0.2


@pytest.mark.parametrize("worlds", SIZES)
def test_true_differences_are_detected_and_no_others(worlds: int) -> None:
    """Ten of forty trials are better by 0.15: in 95 % of simulations no other is reported; those ten often are."""
    rng = np.random.default_rng(29)
    wrong = seen = 0
    for seed in range(worlds):
        scores, member = world(rng, 40, 80, 3, binary=False)
        scores[30:] += 0.15
        sums, sizes = cluster_sums(scores[1:] - scores[0], member)
        found = paired_differences(Sums(sums, sums, sizes), seed=seed, flips=2000).adjusted <= 0.05
        wrong += bool(found[:29].any())
        seen += int(found[29:].sum())
    assert wrong / worlds <= 0.05 + tolerance(worlds, 0.05)
    assert seen / (10 * worlds) > 0.8


@pytest.mark.parametrize("worlds", SIZES)
def test_the_best_is_kept_and_selection_bias_is_removed(worlds: int) -> None:
    """All are equal: each is kept as a possible best in 95 % of simulations; the corrected mean is unbiased."""
    rng = np.random.default_rng(31)
    truth, kept, naive, corrected = _mean_of_many(False), 0, [], []
    for seed in range(worlds):
        scores, member = world(rng, 20, 30, 2, binary=False)
        sums, sizes = cluster_sums(scores, member)
        found = best_of(sums, sums, sizes, seed=seed)
        kept += bool(found.p_value[7] > 0.05)
        naive.append(scores[found.best].mean() - truth)
        corrected.append(found.corrected - truth)
    assert kept / worlds >= 0.95 - tolerance(worlds, 0.95)
    noise = 3 * np.std(corrected) / np.sqrt(worlds)
    assert abs(np.mean(corrected)) <= noise
    assert np.mean(naive) > np.mean(corrected) + 0.03
