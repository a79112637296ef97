"""Paired randomization tests: by hand, against scipy and statsmodels, and with missing judgments."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import permutation_test, ttest_1samp
from statsmodels.stats.multitest import multipletests

from harness.evaluation.stats import Floats, holm, paired_differences
from harness.evaluation.stats.signflips import (
    Sums,
    _reached,
    greatest_statistics,
    least_statistics,
    sign_flips,
    upper_point,
)

ONES = np.ones(8)


def test_three_clusters_by_hand() -> None:
    """Differences 1, 2, 3: of the eight sign patterns, two reach a sum of 6."""
    sums = np.array([[1.0, 2.0, 3.0]])
    assert paired_differences(Sums(sums, sums, np.ones(3)), seed=0).p.tolist() == [0.25]


def test_the_statistic_and_the_interval_by_hand() -> None:
    """Three queries differ by 1, 2 and 3, all in one direction: t = 6 / root of (1 + 0 + 1), the interval 2 -+ c t."""
    sums = Sums(np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 2.0, 3.0]]), np.ones((1, 3)))
    t = 6 / np.sqrt(2)
    assert least_statistics(sums)[0] == pytest.approx(t / np.sqrt(1 + t**2 / 3)) == pytest.approx(6 / np.sqrt(14))
    # With level 0.5 the third largest of four statistics is the critical value: 2 / root of 14, from -1 + 0 + 3.
    found = paired_differences(sums, seed=0, level=0.5)
    critical = found.critical
    reach = critical / np.sqrt(1 - critical**2 / 3) * np.sqrt(2) / 3
    assert (found.low[0], found.high[0]) == (pytest.approx(2 - reach), pytest.approx(2 + reach))


def test_clusters_of_different_sizes_by_hand() -> None:
    """A cluster of one query and one of three, each with a sum of 1: mean 1/2, residuals 1 - 1/2 and 1 - 3/2."""
    sums = Sums(np.array([[1.0, 1.0]]), np.array([[1.0, 1.0]]), np.array([[1.0, 3.0]]))
    assert sums.mean[0] == 0.5
    assert sums.norm[0] == pytest.approx(np.sqrt(0.5))
    t = 2 / np.sqrt(0.5)
    assert least_statistics(sums)[0] == pytest.approx(t / np.sqrt(1 + t**2 * 10 / 16))


def test_all_patterns_are_enumerated_once() -> None:
    """Without mirror images, with the unflipped pattern first."""
    (signs,) = sign_flips(4, seed=0)
    assert signs[0].tolist() == [1, 1, 1, 1]
    assert len({tuple(row) for row in [*signs, *-signs]}) == 16


def test_scipy_agrees() -> None:
    """Its exact sign-flip test of a mean has the same p for uncentred differences."""
    values = np.random.default_rng(1).normal(0.3, 1, 12)
    expected = permutation_test((values, np.zeros(12)), lambda x, y: (x - y).mean(), permutation_type="samples")
    sums = Sums(values[None], values[None], np.ones((1, 12)))
    drawn, _ = greatest_statistics(sums, 0, 10_000)
    assert (drawn >= least_statistics(sums) - 1e-9).mean() == pytest.approx(expected.pvalue, abs=1e-12)
    assert paired_differences(Sums(values[None], values[None], np.ones(12)), seed=0).p[0] >= expected.pvalue - 1e-12


def test_with_many_clusters_it_equals_the_t_test() -> None:
    """300 normal differences: p and bounds are those of scipy's t-test."""
    values = np.random.default_rng(5).normal(0.1, 1, 300)
    expected = ttest_1samp(values, 0)
    found = paired_differences(Sums(values[None], values[None], np.ones(300)), seed=3, flips=40_000)
    assert found.p[0] == pytest.approx(expected.pvalue, abs=0.01)
    bounds = expected.confidence_interval()
    assert found.low[0] == pytest.approx(bounds.low, abs=0.004)
    assert found.high[0] == pytest.approx(bounds.high, abs=0.004)


def test_the_family_by_hand() -> None:
    """Two trials, all 32 patterns, uncentred and centred: p is the larger fraction that reaches the statistic."""
    rows = np.array([[3.0, 3.0, 3.0, 3.0, 3.0, 2.0], [1.0, -1.0, 2.0, 0.5, 0.0, 1.0]])
    found = paired_differences(Sums(rows, rows, np.ones(6)), seed=0)
    patterns = np.array(list(itertools.product((1, -1), repeat=6)))

    def drawn(values: Floats) -> Floats:
        return np.asarray(np.abs(patterns @ (values / np.sqrt((values**2).sum(axis=1, keepdims=True))).T))

    observed = np.abs(rows.sum(axis=1)) / np.sqrt((rows**2).sum(axis=1))
    tables = [drawn(rows), drawn(rows - rows.mean(axis=1, keepdims=True))]
    for trial in (0, 1):
        every = max((table.max(axis=1) >= observed[trial] - 1e-9).mean() for table in tables)
        alone = max((table[:, trial] >= observed[trial] - 1e-9).mean() for table in tables)
        assert found.adjusted[trial] == pytest.approx(every)
        assert found.p[trial] == pytest.approx(alone)


def test_copies_of_a_trial_need_no_correction() -> None:
    """Perfectly correlated trials need no correction, while Holm multiplies p by the number of copies."""
    values = np.random.default_rng(4).normal(0.5, 1, (1, 12)).repeat(30, axis=0)
    found = paired_differences(Sums(values, values, np.ones(12)), seed=0)
    assert found.adjusted.tolist() == found.p.tolist()
    assert holm(found.p)[0] == pytest.approx(min(1.0, 30 * found.p[0]))


def test_holm_equals_statsmodels() -> None:
    """On random p-values, including ties."""
    p = np.round(np.random.default_rng(0).beta(0.5, 3, 40), 2)
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])


def test_a_trial_equal_to_the_baseline_is_never_different() -> None:
    """Without any difference, p is 1 and the interval has zero width."""
    found = paired_differences(Sums(np.zeros((2, 8)), np.zeros((2, 8)), ONES), seed=0)
    assert (found.p.tolist(), found.adjusted.tolist()) == ([1.0, 1.0], [1.0, 1.0])
    assert np.abs([found.low, found.high]).max() < 1e-9


def test_too_few_clusters_give_infinite_bounds() -> None:
    """With two clusters no statistic can exceed the max under flips."""
    found = paired_differences(Sums(np.ones((1, 2)), np.ones((1, 2)), np.ones(2)), seed=0)
    assert (found.low[0], found.high[0]) == (-np.inf, np.inf)


@given(st.integers(0, 10_000))
def test_missing_judgments_never_help(seed: int) -> None:
    """A missing judgment widens the range of the difference: p does not fall."""
    rng = np.random.default_rng(seed)
    sums = np.round(rng.normal(0.5, 1, (2, 10)))
    missing = rng.random((2, 10)) < 0.2
    low, high = np.where(missing, sums - rng.random(), sums), np.where(missing, sums + rng.random(), sums)
    complete, partial = (paired_differences(Sums(*pair, np.ones(10)), seed=0) for pair in ((sums, sums), (low, high)))
    assert (partial.p >= complete.p).all()
    assert (partial.adjusted >= complete.adjusted).all()


def test_a_missing_value_does_not_lower_p() -> None:
    """Five of six differ by 1, the sixth by 0: p is .0625. If the sixth is unknown, p is not smaller."""
    known = np.array([[1.0, 1, 1, 1, 1, 0]])
    unknown = np.array([[1.0, 1, 1, 1, 1, 1]])
    assert paired_differences(Sums(known, known, np.ones(6)), seed=0).p[0] == 0.0625
    assert paired_differences(Sums(known, unknown, np.ones(6)), seed=0).p[0] >= 0.0625


# The midpoints 8, 8, -2 and -2 have mean 3 and residuals of 5 each: a norm of 10. The first may be off by 3, the second
# by 4, so the norm may be off by up to root of (9 + 16) + (3 + 4) * root of v = 5 + 7 / 2, with v = 4 / 16.
UNSURE = Sums(np.array([[5.0, 4, -2, -2]]), np.array([[11.0, 12, -2, -2]]), np.ones((1, 4)))


def test_missing_judgments_by_hand() -> None:
    """The min observed statistic has the min sum, 5, over the max norm, and is the same for both signs."""
    assert (UNSURE.mean[0], UNSURE.spread[0]) == (3.0, 0.25)
    assert (UNSURE.slack[0], UNSURE.norm[0]) == (8.5, 18.5)
    assert least_statistics(UNSURE)[0] == pytest.approx(5 / np.sqrt(18.5**2 + 5**2 / 4))
    turned = Sums(-UNSURE.high, -UNSURE.low, UNSURE.sizes)
    assert least_statistics(turned)[0] == least_statistics(UNSURE)[0]
    assert least_statistics(Sums(UNSURE.low - 2, UNSURE.high, UNSURE.sizes))[0] == 0  # sums from -3 to 19


def test_missing_judgments_under_flips_by_hand() -> None:
    """The max unflipped statistic has the max sum, 12 + 7, over the min norm, 10 - 8.5; centred, the sum is 7.

    With the first two flipped, the norm at the midpoints is as small as the slack, which gives the max possible value.
    """
    (raw, centred) = (table[:, 0] for table in greatest_statistics(UNSURE, 0, 8))
    assert raw[0] == pytest.approx(19 / np.sqrt(1.5**2 + 19**2 / 4))
    assert centred[0] == pytest.approx(7 / np.sqrt(1.5**2 + 7**2 / 4))
    assert (len(raw), centred[3]) == (8, 2.0)  # the patterns count in binary: 3 flips the first two


def test_missing_judgments_widen_the_interval_on_both_sides() -> None:
    """It extends as far below the min mean, 0.99, as above the max mean, 1.02, based on the max norm."""
    low = np.array([[0.0, 2.0] * 8])
    high = low.copy()
    low[0, 0], high[0, 0] = -0.16, 0.32
    found = paired_differences(Sums(low, high, np.ones(16)), seed=0)
    c = found.critical + 1e-9
    reach = c / np.sqrt(1 - c**2 / 16) * Sums(low, high, np.ones((1, 16))).norm[0] / 16
    assert (found.low[0], found.high[0]) == (pytest.approx(0.99 - reach), pytest.approx(1.02 + reach))
    turned = paired_differences(Sums(-high, -low, np.ones(16)), seed=0)
    assert (turned.low[0], turned.high[0]) == (pytest.approx(-found.high[0]), pytest.approx(-found.low[0]))


def test_equal_differences_have_no_residuals() -> None:
    """A difference of 2 for every query, in clusters of one and of three queries: sums of 2 and 6."""
    sums = np.array([[2.0, 6.0]])
    assert Sums(sums, sums, np.array([[1.0, 3.0]])).norm[0] == 0


def test_untested_trials_do_not_weaken_others() -> None:
    """A trial with too much missing has p 1; the other has p and bounds as if it were alone."""
    rows = np.random.default_rng(2).normal(1, 1, (2, 10))
    wide = np.array([[0.0], [9.0]])
    alone = paired_differences(Sums(rows[:1], rows[:1], np.ones(10)), seed=0)
    both = paired_differences(Sums(rows - wide, rows + wide, np.ones(10)), seed=0, tested=np.array([True, False]))
    assert (both.p[1], both.adjusted[1]) == (1.0, 1.0)
    for found, expected in zip(both[:6], alone[:6], strict=True):
        assert found[0] == pytest.approx(expected[0])
    assert both.critical == alone.critical
    assert both.low[1] < rows[1].mean() - 9
    assert rows[1].mean() + 9 < both.high[1]


def test_trials_may_have_different_cluster_sizes() -> None:
    """For each trial, p and bounds are as if it were alone."""
    rows = np.random.default_rng(2).normal(1, 1, (2, 10))
    sizes = np.array([[1.0] * 10, [1.0, 5.0] * 5])
    both = paired_differences(Sums(rows, rows, sizes), seed=0)
    for trial in (0, 1):
        alone = paired_differences(Sums(rows[[trial]], rows[[trial]], sizes[trial]), seed=0)
        assert both.p[trial] == alone.p[0]
        assert both.alone_low[trial] == pytest.approx(alone.alone_low[0])
        assert both.alone_high[trial] == pytest.approx(alone.alone_high[0])


def test_bounds_are_given_even_if_nothing_is_tested() -> None:
    """The bounds use the critical value of the midpoints of the differences; p is 1."""
    rows = np.random.default_rng(2).normal(1, 1, (2, 10))
    none = paired_differences(Sums(rows - 0.5, rows + 0.5, np.ones(10)), seed=0, tested=np.zeros(2, bool))
    middle = paired_differences(Sums(rows, rows, np.ones(10)), seed=0)
    assert (none.p.tolist(), none.adjusted.tolist()) == ([1.0, 1.0], [1.0, 1.0])
    assert none.critical == middle.critical
    assert (none.low < middle.low - 0.5).all()
    assert (none.alone_low < middle.alone_low - 0.5).all()
    assert (middle.alone_high + 0.5 < none.alone_high).all()
    assert (none.alone_high <= none.high).all()
    assert (none.alone_high < none.high).any()


def test_untested_trials_have_simultaneous_bounds() -> None:
    """Their single bounds equal their simultaneous ones; tested trials have narrower single bounds."""
    rows = np.random.default_rng(2).normal(1, 1, (3, 10))
    found = paired_differences(Sums(rows, rows, np.ones(10)), seed=0, tested=np.array([True, True, False]))
    assert (found.alone_low[2], found.alone_high[2]) == (found.low[2], found.high[2])
    assert (found.low[:2] < found.alone_low[:2]).any()


def test_no_queries_have_no_difference() -> None:
    """If no query has a value in both trials, mean and norm are 0."""
    sums = Sums(np.zeros((1, 2)), np.zeros((1, 2)), np.zeros((1, 2)))
    assert (sums.queries[0], sums.mean[0], sums.norm[0]) == (1, 0, 0)


def test_upper_points_by_hand() -> None:
    """A tenth of ten values is one, despite floating-point noise: above 8. A twentieth is less than one: infinite."""
    assert upper_point(np.arange(10.0), 1 - 0.9) == 8
    assert upper_point(np.arange(10.0), 0.29) == 7
    assert upper_point(np.arange(10.0), 0.05) == np.inf


def test_no_trials_have_no_differences() -> None:
    """This happens if the baseline is the only trial."""
    found = paired_differences(Sums(np.zeros((0, 6)), np.zeros((0, 6)), np.ones(6)), seed=0)
    assert [len(part) for part in found[:6]] == [0] * 6
    assert found.critical == 0


def test_patterns_are_sampled_if_there_are_too_many() -> None:
    """Eight flips are all patterns of four clusters, without mirrors; for five clusters they are a random sample."""
    assert len(np.unique(np.concatenate(list(sign_flips(4, 0, 8))), axis=0)) == 8
    (drawn,) = sign_flips(5, 0, 8)
    assert drawn.shape == (8, 5)
    assert drawn[0].tolist() == [1] * 5
    assert set(drawn[1:].ravel().tolist()) == {-1.0, 1.0}
    assert (drawn[-1] != 1).any()
    assert [len(signs) for signs in sign_flips(1, 0, 8)] == [1]


def test_patterns_are_sampled_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five clusters and room for 10 numbers give blocks of two flips; only the very first flip is unflipped."""
    monkeypatch.setattr("harness.evaluation.stats.signflips.BLOCK", 10)
    blocks = list(sign_flips(5, 0, 7))
    assert [len(block) for block in blocks] == [2, 2, 2, 1]
    assert blocks[0][0].tolist() == [1] * 5
    assert any((block[0] != 1).any() for block in blocks[1:])
    monkeypatch.setattr("harness.evaluation.stats.signflips.BLOCK", 1)
    assert [len(block) for block in sign_flips(5, 0, 7)] == [1] * 7


KINDS = ("ties", "skewed", "constant", "normal", "noise")


def differences(kind: str, rng: np.random.Generator, trials: int, sizes: Floats) -> Floats:
    """Sums of differences by cluster, of a kind that is difficult for the statistics."""
    shape = (trials, len(sizes))
    made = {
        "ties": lambda: rng.integers(-1, 3, shape) * sizes,
        "skewed": lambda: rng.exponential(1, shape) * sizes - 0.3 * sizes,
        "constant": lambda: np.repeat(rng.integers(0, 3, (trials, 1)) / 10, len(sizes), axis=1) * sizes,
        "normal": lambda: rng.normal(0.5, 1, shape) * np.sqrt(sizes),
        "noise": lambda: (0.1 + 0.2 - 0.3) * rng.integers(-1, 2, shape),
    }
    return np.asarray(made[kind](), np.float64)


@given(st.integers(0, 10_000), st.integers(2, 24), st.integers(1, 5), st.sampled_from(KINDS), st.booleans())
def test_p_and_interval_agree(seed: int, clusters: int, trials: int, kind: str, missing: bool) -> None:
    """p is at most 5 % exactly if the interval excludes 0, for single and for simultaneous tests, with any number and
    sizes of clusters, ties and missing judgments; simultaneous intervals are never narrower than single ones."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, clusters).astype(float)
    low = differences(kind, rng, trials, sizes)
    high = low + rng.random(low.shape) * (rng.random(low.shape) < 0.2) if missing else low
    found = paired_differences(Sums(low, high, sizes), seed=seed, flips=500)
    for p, bottom, top in (
        (found.adjusted, found.low, found.high),
        (found.p, found.alone_low, found.alone_high),
    ):
        assert ((p <= 0.05) == ((bottom > 0) | (top < 0))).all()
    assert (found.low <= found.alone_low).all()
    assert (found.alone_high <= found.high).all()
    assert (found.adjusted >= found.p).all()


def test_fractions_of_flips_are_exact() -> None:
    """25 of 500 are exactly 5 %, without floating-point error."""
    greatest = np.arange(500.0)
    assert _reached(greatest, np.array([475.0, 450.0])).tolist() == [0.05, 0.1]


def test_ten_clusters_of_sixteen_queries() -> None:
    """Clusters of different sizes, eleven trials, one far better: it is detected, and both bounds are finite.

    Inverting a test whose statistic does not use residuals gave -1.000 … +0.874 next to the verdict `better`.
    """
    rng = np.random.default_rng(3)
    sizes = np.array([1.0, 1, 1, 1, 1, 1, 2, 2, 3, 3])
    sums = rng.integers(-1, 2, (11, 10)) * 1.0
    sums[0] = sizes * 0.6 - [0.2, 0, 0.1, 0.3, 0, 0.2, 0.1, 0.3, 0, 0.4]
    found = paired_differences(Sums(sums, sums, sizes), seed=0)
    assert found.adjusted[0] <= 0.05
    assert 0 < found.low[0] < found.high[0] < 1
