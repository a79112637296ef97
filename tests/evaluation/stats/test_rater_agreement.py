"""Agreement statistics against values calculated by hand and published values."""

import numpy as np
import pytest
from scipy.stats import t

from harness.evaluation.stats.rater_agreement import Confusion, kappa, kappa_interval, ppi_by_query
from harness.evaluation.stats.rates import wilson


def test_kappa_by_hand() -> None:
    """20, 5, 10, 15 of 50: observed .7, expected .5, kappa .4."""
    assert float(kappa([20, 5, 10, 15])) == pytest.approx(0.4)
    assert float(kappa([10, 0, 0, 10])) == 1.0
    assert np.isnan(kappa([10, 0, 0, 0]))


def test_confusion() -> None:
    """Human labels first, judge second."""
    people, judge = np.array([True, True, False, False, True]), np.array([True, False, True, False, True])
    assert Confusion.of(people, judge) == Confusion(2, 1, 1, 1)


def test_wilson_by_hand() -> None:
    """8 of 10 give .490 to .943 (R's prop.test without correction); no items give NaN."""
    found = wilson(8, 10)
    assert (found.value, round(found.low, 4), round(found.high, 4)) == (0.8, 0.4902, 0.9433)
    assert wilson(0, 10).low == 0.0
    assert wilson(10, 10).high == pytest.approx(1.0)
    assert np.isnan(wilson(0, 0).value)


def test_kappa_interval_contains_kappa_and_is_reproducible() -> None:
    """It is wider if the items of a query are correlated."""
    rng = np.random.default_rng(1)
    people = rng.random(300) < 0.4
    judge = people ^ (rng.random(300) < 0.2)
    alone = kappa_interval(people, judge, np.arange(300), seed=5)
    assert alone.low < alone.value < alone.high
    assert alone == kappa_interval(people, judge, np.arange(300), seed=5)
    few = np.repeat(np.arange(15), 20)
    together = kappa_interval(np.repeat(people[:15], 20), np.repeat(judge[:15], 20), few, seed=5)
    assert together.high - together.low > alone.high - alone.low


def test_by_query_by_hand() -> None:
    """The weight is cov(people, slack) / var(slack); the error is the deviation of the residuals over root of n."""
    people = np.array([0.2, 0.8, 0.5, 0.9, 0.1, 0.6])
    judge, everywhere = np.array([0.1, 0.9, 0.4, 0.9, 0.3, 0.5]), np.array([0.3, 0.6, 0.5, 0.7, 0.2, 0.5])
    slack = judge - everywhere
    weight = np.cov(people, slack, ddof=1)[0, 1] / slack.var(ddof=1)
    left = people - min(1.0, weight) * slack
    found = ppi_by_query(people, judge, everywhere)
    assert found.value == pytest.approx(left.mean())
    assert found.high - found.value == pytest.approx(t.ppf(0.975, 5) * left.std(ddof=1) / np.sqrt(6), rel=1e-4)


def test_a_judge_without_variance_has_no_effect() -> None:
    """Without slack the weight is 0."""
    people = np.array([1.0, 0.0, 1.0, 1.0])
    found = ppi_by_query(people, np.full(4, 0.5), np.full(4, 0.5))
    assert found.value == 0.75


def test_by_query_fully_graded_is_the_mean_of_people() -> None:
    """If people graded everything, the judge's graded part is the judge's entire part."""
    people, judge = np.array([0.2, 0.6, 0.4, 0.8]), np.array([0.5, 0.1, 0.9, 0.3])
    assert ppi_by_query(people, judge, judge).value == pytest.approx(0.5)


def test_the_kappa_interval_resamples_all_four_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many clusters the bounds are symmetric around kappa: 0.4 for cells of 200, 50, 100 and 150. Blocks change
    nothing. If neither rater varies, there is no kappa."""
    people = np.repeat([True, True, False, False], [200, 50, 100, 150])
    judge = np.repeat([True, False, True, False], [200, 50, 100, 150])
    found = kappa_interval(people, judge, np.arange(500), seed=0, resamples=401)
    assert found.value == pytest.approx(0.4)
    # The error of kappa here is 0.04.
    assert (found.low, found.high) == (pytest.approx(0.32, abs=0.02), pytest.approx(0.48, abs=0.02))
    for block in (1000, 100):
        monkeypatch.setattr("harness.evaluation.stats.rater_agreement.BLOCK", block)
        assert kappa_interval(people, judge, np.arange(500), seed=0, resamples=401) == pytest.approx(found)
    same = kappa_interval(np.ones(6, bool), np.ones(6, bool), range(6), seed=0)
    assert np.isnan(same).all()


@pytest.mark.parametrize(("sign", "weight"), [(1.0, 1.0), (-1.0, 0.0), (2.0, 0.5)])
def test_the_weight_of_slack_by_hand(sign: float, weight: float) -> None:
    """Slack equal to the human labels, opposite to them, or twice as large: weight 1, at least 0, 1/2."""
    people = np.array([0.2, 0.6, 0.4, 0.8])
    slack = sign * (people - 0.5) + 0.1
    found = ppi_by_query(people, slack, np.zeros(4))
    assert found.value == pytest.approx(0.5 - weight * 0.1)
    assert found.value - found.low == pytest.approx(found.high - found.value)
    assert (found.low < found.value - 0.01) == (weight == 0)


def test_the_weight_of_slack_is_at_most_1() -> None:
    """Slack with half the variation of the human labels would have a weight of 2."""
    people = np.array([0.2, 0.6, 0.4, 0.8])
    assert ppi_by_query(people, (people - 0.5) / 2 + 0.1, np.zeros(4)).value == pytest.approx(0.4)


def test_confusion_with_different_cells() -> None:
    """Cells of one, two, three and four items."""
    people = np.repeat([True, True, False, False], [1, 2, 3, 4])
    judge = np.repeat([True, False, True, False], [1, 2, 3, 4])
    assert Confusion.of(people, judge) == Confusion(1, 2, 3, 4)


def test_a_judge_that_is_off_by_a_constant_gets_no_weight() -> None:
    """Its slack is constant, so there is nothing to regress on: the estimate is the mean of the human labels."""
    people = np.array([0.0, 1.0, 0.5, 0.5])
    everywhere = np.array([0.2, 0.4, 0.6, 0.8])
    assert ppi_by_query(people, everywhere + 0.125, everywhere).value == pytest.approx(0.5)
