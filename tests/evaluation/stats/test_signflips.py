"""Paired randomisation: by hand, against scipy and statsmodels, and under missing judgments."""

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
    assert paired_differences(sums, sums, np.ones(3), seed=0).p.tolist() == [0.25]


def test_the_statistic_and_the_interval_by_hand() -> None:
    """Three queries differ by 1, 2 and 3, all in one direction: t = 6 / root of (1 + 0 + 1), the interval 2 -+ c t."""
    sums = Sums(np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 2.0, 3.0]]), np.ones((1, 3)))
    t = 6 / np.sqrt(2)
    assert least_statistics(sums)[0] == pytest.approx(t / np.sqrt(1 + t**2 / 3)) == pytest.approx(6 / np.sqrt(14))
    # At half the patterns allowed beyond, the third greatest of four statistics decides: 2 / root of 14, of -1 + 0 + 3.
    found = paired_differences(sums.low, sums.high, np.ones(3), seed=0, level=0.5)
    critical = found.critical
    reach = critical / np.sqrt(1 - critical**2 / 3) * np.sqrt(2) / 3
    assert (found.low[0], found.high[0]) == (pytest.approx(2 - reach), pytest.approx(2 + reach))


def test_clusters_of_unlike_sizes_by_hand() -> None:
    """A cluster of one query and one of three, differing by 1 and 1: residuals 1 - 1/2 and 1 - 3/2 of a mean of 1/2."""
    sums = Sums(np.array([[1.0, 1.0]]), np.array([[1.0, 1.0]]), np.array([[1.0, 3.0]]))
    assert sums.mean[0] == 0.5
    assert sums.norm[0] == pytest.approx(np.sqrt(0.5))
    t = 2 / np.sqrt(0.5)
    assert least_statistics(sums)[0] == pytest.approx(t / np.sqrt(1 + t**2 * 10 / 16))


def test_all_patterns_are_gone_through_once() -> None:
    """Each without its mirror, the unflipped one first."""
    (signs,) = sign_flips(4, seed=0)
    assert signs[0].tolist() == [1, 1, 1, 1]
    assert len({tuple(row) for row in [*signs, *-signs]}) == 16


def test_scipy_agrees() -> None:
    """Its exact test of a mean by flipping signs gives the same p for differences flipped as they are."""
    values = np.random.default_rng(1).normal(0.3, 1, 12)
    theirs = permutation_test((values, np.zeros(12)), lambda x, y: (x - y).mean(), permutation_type="samples")
    sums = Sums(values[None], values[None], np.ones((1, 12)))
    drawn, _ = greatest_statistics(sums, 0, 10_000)
    assert (drawn >= least_statistics(sums) - 1e-9).mean() == pytest.approx(theirs.pvalue, abs=1e-12)
    assert paired_differences(values[None], values[None], np.ones(12), seed=0).p[0] >= theirs.pvalue - 1e-12


def test_with_many_clusters_it_is_students_test_and_interval() -> None:
    """300 normal differences: p and bounds as scipy's t-test has them."""
    values = np.random.default_rng(5).normal(0.1, 1, 300)
    theirs = ttest_1samp(values, 0)
    ours = paired_differences(values[None], values[None], np.ones(300), seed=3, flips=40_000)
    assert ours.p[0] == pytest.approx(theirs.pvalue, abs=0.01)
    bounds = theirs.confidence_interval()
    assert (ours.low[0], ours.high[0]) == (pytest.approx(bounds.low, abs=0.004), pytest.approx(bounds.high, abs=0.004))


def test_the_family_by_hand() -> None:
    """Two trials against all 32 patterns, as they are and centred: p is the greater share that reaches a statistic."""
    rows = np.array([[3.0, 3.0, 3.0, 3.0, 3.0, 2.0], [1.0, -1.0, 2.0, 0.5, 0.0, 1.0]])
    found = paired_differences(rows, rows, np.ones(6), seed=0)
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


# The middles 8, 8, -2 and -2 have mean 3 and residuals of 5 each: a norm of 10. The first may be off by 3, the second
# by 4: the norm then by up to root of (9 + 16) + (3 + 4) * root of v = 5 + 7 / 2, v being 4 / 16.
UNSURE = Sums(np.array([[5.0, 4, -2, -2]]), np.array([[11.0, 12, -2, -2]]), np.ones((1, 4)))


def test_missing_judgments_by_hand() -> None:
    """The least statistic observed has the least sum, 5, over the greatest norm, and is the same for either sign."""
    assert (UNSURE.mean[0], UNSURE.spread[0]) == (3.0, 0.25)
    assert (UNSURE.slack[0], UNSURE.norm[0]) == (8.5, 18.5)
    assert least_statistics(UNSURE)[0] == pytest.approx(5 / np.sqrt(18.5**2 + 5**2 / 4))
    turned = Sums(-UNSURE.high, -UNSURE.low, UNSURE.sizes)
    assert least_statistics(turned)[0] == least_statistics(UNSURE)[0]
    assert least_statistics(Sums(UNSURE.low - 2, UNSURE.high, UNSURE.sizes))[0] == 0  # sums from -3 to 19


def test_missing_judgments_under_flips_by_hand() -> None:
    """The greatest statistic of the unflipped has the greatest sum, 12 + 7, over the least norm, 10 - 8.5; centred, the
    sum is 7. With the first two flipped, the norm of the middles is as small as their slack: the greatest there is."""
    (raw, centred) = (table[:, 0] for table in greatest_statistics(UNSURE, 0, 8))
    assert raw[0] == pytest.approx(19 / np.sqrt(1.5**2 + 19**2 / 4))
    assert centred[0] == pytest.approx(7 / np.sqrt(1.5**2 + 7**2 / 4))
    assert (len(raw), centred[3]) == (8, 2.0)  # the patterns count in binary: 3 flips the first two


def test_missing_judgments_widen_the_interval_on_both_sides() -> None:
    """It reaches below the least mean, 0.99, by as much as above the greatest, 1.02, by the norm at its greatest."""
    low = np.array([[0.0, 2.0] * 8])
    high = low.copy()
    low[0, 0], high[0, 0] = -0.16, 0.32
    found = paired_differences(low, high, np.ones(16), seed=0)
    c = found.critical + 1e-9
    reach = c / np.sqrt(1 - c**2 / 16) * Sums(low, high, np.ones((1, 16))).norm[0] / 16
    assert (found.low[0], found.high[0]) == (pytest.approx(0.99 - reach), pytest.approx(1.02 + reach))
    turned = paired_differences(-high, -low, np.ones(16), seed=0)
    assert (turned.low[0], turned.high[0]) == (pytest.approx(-found.high[0]), pytest.approx(-found.low[0]))


def test_queries_that_all_differ_alike_have_no_residuals() -> None:
    """By 2 each, in clusters of one and of three queries: sums of 2 and 6."""
    sums = np.array([[2.0, 6.0]])
    assert Sums(sums, sums, np.array([[1.0, 3.0]])).norm[0] == 0


def test_what_is_not_tested_weakens_nothing() -> None:
    """A trial with too much missing has p 1; the other has p and bounds as if it were alone."""
    rows = np.random.default_rng(2).normal(1, 1, (2, 10))
    wide = np.array([[0.0], [9.0]])
    alone = paired_differences(rows[:1], rows[:1], np.ones(10), seed=0)
    both = paired_differences(rows - wide, rows + wide, np.ones(10), seed=0, tested=np.array([True, False]))
    assert (both.p[1], both.adjusted[1]) == (1.0, 1.0)
    for ours, theirs in zip(both[:6], alone[:6], strict=True):
        assert ours[0] == pytest.approx(theirs[0])
    assert both.critical == alone.critical
    assert both.low[1] < rows[1].mean() - 9
    assert rows[1].mean() + 9 < both.high[1]


def test_trials_may_count_different_queries() -> None:
    """Each has sizes of its own: p and bounds are as if it were alone."""
    rows = np.random.default_rng(2).normal(1, 1, (2, 10))
    sizes = np.array([[1.0] * 10, [1.0, 5.0] * 5])
    both = paired_differences(rows, rows, sizes, seed=0)
    for trial in (0, 1):
        alone = paired_differences(rows[[trial]], rows[[trial]], sizes[trial], seed=0)
        assert both.p[trial] == alone.p[0]
        assert both.alone_low[trial] == pytest.approx(alone.alone_low[0])
        assert both.alone_high[trial] == pytest.approx(alone.alone_high[0])


def test_bounds_are_given_even_if_nothing_is_tested() -> None:
    """By what the middles of the differences must exceed; p is 1."""
    rows = np.random.default_rng(2).normal(1, 1, (2, 10))
    none = paired_differences(rows - 0.5, rows + 0.5, np.ones(10), seed=0, tested=np.zeros(2, bool))
    middle = paired_differences(rows, rows, np.ones(10), seed=0)
    assert (none.p.tolist(), none.adjusted.tolist()) == ([1.0, 1.0], [1.0, 1.0])
    assert none.critical == middle.critical
    assert (none.low < middle.low - 0.5).all()
    assert (none.alone_low < middle.alone_low - 0.5).all()
    assert (middle.alone_high + 0.5 < none.alone_high).all()
    assert (none.alone_high <= none.high).all()
    assert (none.alone_high < none.high).any()


def test_what_is_not_tested_has_the_bounds_of_the_family() -> None:
    """By itself as for all at once; those that are tested have narrower ones by themselves."""
    rows = np.random.default_rng(2).normal(1, 1, (3, 10))
    found = paired_differences(rows, rows, np.ones(10), seed=0, tested=np.array([True, True, False]))
    assert (found.alone_low[2], found.alone_high[2]) == (found.low[2], found.high[2])
    assert (found.low[:2] < found.alone_low[:2]).any()


def test_no_queries_have_no_difference() -> None:
    """Where no query has a value in both trials, the sum of nothing over nothing is 0."""
    sums = Sums(np.zeros((1, 2)), np.zeros((1, 2)), np.zeros((1, 2)))
    assert (sums.queries[0], sums.mean[0], sums.norm[0]) == (1, 0, 0)


def test_upper_points_by_hand() -> None:
    """Of ten, a tenth is one, whatever the last bits say: above 8. A twentieth is less than one: nothing will do."""
    assert upper_point(np.arange(10.0), 1 - 0.9) == 8
    assert upper_point(np.arange(10.0), 0.29) == 7
    assert upper_point(np.arange(10.0), 0.05) == np.inf


def test_no_trials_have_no_differences() -> None:
    """As where the baseline is the only trial."""
    found = paired_differences(np.zeros((0, 6)), np.zeros((0, 6)), np.ones(6), seed=0)
    assert [len(part) for part in found[:6]] == [0] * 6
    assert found.critical == 0


def test_patterns_are_drawn_where_they_are_too_many() -> None:
    """Eight flips hold all patterns of four clusters without mirrors; of five they are a draw, the first unflipped."""
    assert len(np.unique(np.concatenate(list(sign_flips(4, 0, 8))), axis=0)) == 8
    (drawn,) = sign_flips(5, 0, 8)
    assert drawn.shape == (8, 5)
    assert drawn[0].tolist() == [1] * 5
    assert set(drawn[1:].ravel().tolist()) == {-1.0, 1.0}
    assert (drawn[-1] != 1).any()
    assert [len(signs) for signs in sign_flips(1, 0, 8)] == [1]


def test_patterns_are_drawn_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five clusters with room for 10 numbers make blocks of two flips; only the first flip of all is unflipped."""
    monkeypatch.setattr("harness.evaluation.stats.signflips.BLOCK", 10)
    blocks = list(sign_flips(5, 0, 7))
    assert [len(block) for block in blocks] == [2, 2, 2, 1]
    assert blocks[0][0].tolist() == [1] * 5
    assert any((block[0] != 1).any() for block in blocks[1:])
    monkeypatch.setattr("harness.evaluation.stats.signflips.BLOCK", 1)
    assert [len(block) for block in sign_flips(5, 0, 7)] == [1] * 7


KINDS = ("ties", "skewed", "constant", "normal", "noise")


def differences(kind: str, rng: np.random.Generator, trials: int, sizes: Floats) -> Floats:
    """Sums by cluster of differences of a kind that statistics stumble over."""
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
def test_word_p_and_interval_agree(seed: int, clusters: int, trials: int, kind: str, missing: bool) -> None:
    """p is at most 5 % just where the interval leaves out 0, for each trial alone and for all at once, whatever the
    number and sizes of clusters, ties, and missing judgments; and what holds for all is never narrower."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, clusters).astype(float)
    low = differences(kind, rng, trials, sizes)
    high = low + rng.random(low.shape) * (rng.random(low.shape) < 0.2) if missing else low
    found = paired_differences(low, high, sizes, seed=seed, flips=500)
    for p, bottom, top in (
        (found.adjusted, found.low, found.high),
        (found.p, found.alone_low, found.alone_high),
    ):
        assert ((p <= 0.05) == ((bottom > 0) | (top < 0))).all()
    assert (found.low <= found.alone_low).all()
    assert (found.alone_high <= found.high).all()
    assert (found.adjusted >= found.p).all()


def test_a_share_of_flips_is_what_division_gives() -> None:
    """25 of 500 are 5 %, not the last bit more."""
    greatest = np.arange(500.0)
    assert _reached(greatest, np.array([475.0, 450.0])).tolist() == [0.05, 0.1]


def test_ten_clusters_of_sixteen_queries() -> None:
    """Clusters of unlike sizes, eleven trials, one far better: it is told, and its interval is bounded on both sides.

    Inverting a test whose statistic is not about residuals gave -1.000 … +0.874 beside the word `better`.
    """
    rng = np.random.default_rng(3)
    sizes = np.array([1.0, 1, 1, 1, 1, 1, 2, 2, 3, 3])
    sums = rng.integers(-1, 2, (11, 10)) * 1.0
    sums[0] = sizes * 0.6 - [0.2, 0, 0.1, 0.3, 0, 0.2, 0.1, 0.3, 0, 0.4]
    found = paired_differences(sums, sums, sizes, seed=0)
    assert found.adjusted[0] <= 0.05
    assert 0 < found.low[0] < found.high[0] < 1
