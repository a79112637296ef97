"""Rates of clustered trials, by hand and against statsmodels."""

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from harness.evaluation.stats import clustered_rate


def rate(successes: list[float], trials: list[float], clusters: str) -> tuple[float, float, float]:
    return tuple(clustered_rate(np.array(successes), np.array(trials), list(clusters)))


def wilson(share: float, number: float) -> object:
    """The Wilson interval of statsmodels for an effective sample size."""
    return pytest.approx((share, *proportion_confint(share * number, number, method="wilson")), abs=1e-12)


def test_single_unit_clusters_by_hand() -> None:
    """One of four succeeds: deviations of 3/16 and three times -1/16, a variance of 4/3 * 12/256 = 1/16, and 3/16 over
    that is an effective sample size of 3."""
    assert rate([1, 0, 0, 0], [1, 1, 1, 1], "abcd") == wilson(0.25, 3)


def test_clusters_by_hand() -> None:
    """One of one and none of three: deviations of 3/16 and -3/16, a variance of 2 * 18/256 = 9/64, effective size 4/3.

    A cluster without trials does not count; listing the units of a cluster one by one changes nothing.
    """
    assert rate([1, 0], [1, 3], "ab") == wilson(0.25, 4 / 3)
    assert rate([1, 0, 0], [1, 3, 0], "abc") == wilson(0.25, 4 / 3)
    assert rate([0, 1, 0, 0], [1, 1, 1, 1], "babb") == wilson(0.25, 4 / 3)


def test_the_effective_size_is_at_most_the_number_of_trials() -> None:
    """Clusters more alike than expected by chance: 2 of 4 each, which do not vary at all, or 2, 2, 2 and 1 of 4."""
    assert rate([2, 2, 2], [4, 4, 4], "abc") == wilson(0.5, 12)
    assert rate([2, 2, 2, 1], [4, 4, 4, 4], "abcd") == wilson(7 / 16, 16)


def test_without_variance_the_effective_size_is_the_number_of_clusters() -> None:
    """None or all of six trials in three clusters count as three trials; a single cluster counts as one."""
    assert rate([0, 0, 0, 0], [2, 2, 2, 0], "abcd") == wilson(0, 3)
    assert rate([2, 2, 2, 0], [2, 2, 2, 0], "abcd") == wilson(1, 3)
    assert rate([1, 0], [4, 0], "ab") == wilson(0.25, 1)


def test_the_interval_contains_the_rate() -> None:
    """And lies between 0 and 1, despite floating-point noise."""
    for total in range(1, 40):
        for share in (0, total):
            found = clustered_rate(np.array([share]), np.array([total]), ["a"])
            assert 0 <= found.low <= found.value <= found.high <= 1


def test_no_trials_have_no_rate() -> None:
    """All values are NaN."""
    assert np.isnan(rate([0, 0], [0, 0], "ab")).all()
