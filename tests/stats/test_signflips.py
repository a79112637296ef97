"""Paired randomisation: by hand, against scipy and statsmodels, and under missing judgments."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import permutation_test, ttest_1samp
from statsmodels.stats.multitest import multipletests

from harness.stats import holm, paired_differences
from harness.stats.signflips import sign_flips

ONES = np.ones(8)


def test_three_clusters_by_hand() -> None:
    """Differences 1, 2, 3: of the eight sign patterns, two reach a sum of 6."""
    sums = np.array([[1.0, 2.0, 3.0]])
    assert paired_differences(sums, sums, np.ones(3), seed=0).p.tolist() == [0.25]


def test_all_patterns_are_gone_through_once() -> None:
    """Each without its mirror, the unflipped one first."""
    signs = sign_flips(4, seed=0)
    assert signs[0].tolist() == [1, 1, 1, 1]
    assert len({tuple(row) for row in [*signs, *-signs]}) == 16


def test_scipy_agrees() -> None:
    """Its exact test of a mean by flipping signs gives the same p."""
    values = np.random.default_rng(1).normal(0.3, 1, 12)
    theirs = permutation_test((values, np.zeros(12)), lambda x, y: (x - y).mean(), permutation_type="samples")
    ours = paired_differences(values[None], values[None], np.ones(12), seed=0)
    assert ours.p[0] == pytest.approx(theirs.pvalue, abs=1e-12)


def test_with_many_clusters_it_is_students_test_and_interval() -> None:
    """300 normal differences: p and bounds as scipy's t-test has them."""
    values = np.random.default_rng(5).normal(0.1, 1, 300)
    theirs = ttest_1samp(values, 0)
    ours = paired_differences(values[None], values[None], np.ones(300), seed=3, flips=40_000)
    assert ours.p[0] == pytest.approx(theirs.pvalue, abs=0.01)
    bounds = theirs.confidence_interval()
    assert (ours.low[0], ours.high[0]) == (pytest.approx(bounds.low, abs=0.004), pytest.approx(bounds.high, abs=0.004))


def test_test_and_interval_say_the_same() -> None:
    """A single difference is told from none just where its interval leaves out 0, up to the noise of drawing."""
    rng, agree = np.random.default_rng(2), 0
    for trial in range(200):
        values = rng.normal(0.4, 1, (1, 30))
        found = paired_differences(values, values, np.ones(30), seed=trial, flips=4000)
        agree += (found.p[0] <= 0.05) == (found.low[0] > 0 or found.high[0] < 0)
    assert agree >= 196


def test_stepping_down_by_hand() -> None:
    """One trial against all patterns is exact; the smaller of two is only tested against itself once the other goes."""
    sums = np.array([[3.0, 3.0, 3.0, 3.0, 3.0, 2.0], [1.0, -1.0, 2.0, 0.5, 0.0, 1.0]])
    found = paired_differences(sums, sums, np.ones(6), seed=0)
    scaled = sums / np.sqrt((sums**2).sum(axis=1, keepdims=True))
    drawn = np.array([np.abs(scaled @ signs) for signs in itertools.product((1, -1), repeat=6)])
    observed = np.abs(scaled.sum(axis=1))
    greatest = (drawn.max(axis=1) >= observed[0] - 1e-12).mean()
    assert found.adjusted[0] == pytest.approx(greatest)
    assert found.adjusted[1] == pytest.approx(max(greatest, (drawn[:, 1] >= observed[1] - 1e-12).mean()))


def test_copies_of_a_trial_cost_nothing() -> None:
    """What goes together needs no correction, which is the point: Holm would multiply p by the number of copies."""
    values = np.random.default_rng(4).normal(0.5, 1, (1, 12)).repeat(30, axis=0)
    found = paired_differences(values, values, np.ones(12), seed=0)
    assert found.adjusted.tolist() == found.p.tolist()
    assert holm(found.p)[0] == pytest.approx(min(1.0, 30 * found.p[0]))


def test_holm_is_that_of_statsmodels() -> None:
    """On random p-values, ties included."""
    p = np.round(np.random.default_rng(0).beta(0.5, 3, 40), 2)
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])


def test_a_trial_like_the_baseline_is_never_told_from_it() -> None:
    """No difference at all: p 1, an interval of no width."""
    found = paired_differences(np.zeros((2, 8)), np.zeros((2, 8)), ONES, seed=0)
    assert (found.p.tolist(), found.adjusted.tolist()) == ([1.0, 1.0], [1.0, 1.0])
    assert np.abs([found.low, found.high]).max() < 1e-9


def test_too_few_clusters_bound_nothing() -> None:
    """With two, no statistic passes the greatest that flipping gives."""
    found = paired_differences(np.ones((1, 2)), np.ones((1, 2)), np.ones(2), seed=0)
    assert (found.low[0], found.high[0]) == (-np.inf, np.inf)


@given(st.integers(0, 10_000))
def test_failing_more_never_helps(seed: int) -> None:
    """A missing judgment widens what a difference can be: p does not fall and the interval does not shrink."""
    rng = np.random.default_rng(seed)
    sums = np.round(rng.normal(0.5, 1, (2, 10)))
    missing = rng.random((2, 10)) < 0.2
    low, high = np.where(missing, sums - rng.random(), sums), np.where(missing, sums + rng.random(), sums)
    whole, short = (paired_differences(*pair, np.ones(10), seed=0) for pair in ((sums, sums), (low, high)))
    assert (short.p >= whole.p).all()
    assert (short.adjusted >= whole.adjusted).all()


def test_a_missing_value_is_no_reason_to_tell() -> None:
    """Five of six differ by 1, the sixth by 0: p .0625. Were the sixth unknown, p would be no less."""
    known = np.array([[1.0, 1, 1, 1, 1, 0]])
    unknown = np.array([[1.0, 1, 1, 1, 1, 1]])
    assert paired_differences(known, known, np.ones(6), seed=0).p[0] == 0.0625
    assert paired_differences(known, unknown, np.ones(6), seed=0).p[0] >= 0.0625


@given(st.integers(0, 10_000), st.integers(2, 9))
def test_an_interval_leaves_out_none_only_where_the_test_does(seed: int, clusters: int) -> None:
    """With however few clusters, and whatever their sizes."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, clusters).astype(float)
    sums = rng.integers(-1, 3, (3, clusters)) * sizes
    found = paired_differences(sums, sums, sizes, seed=0)
    outside = (found.low > 1e-9) | (found.high < -1e-9)
    assert (found.adjusted[outside] <= 0.05).all()
