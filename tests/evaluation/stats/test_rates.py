"""Shares of things that come in clusters, by hand and against statsmodels."""

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from harness.evaluation.stats import clustered_rate


def rate(successes: list[float], trials: list[float], clusters: str) -> tuple[float, float, float]:
    return tuple(clustered_rate(np.array(successes), np.array(trials), list(clusters)))


def wilson(share: float, number: float) -> object:
    """A share of an effective number, as statsmodels has its interval."""
    return pytest.approx((share, *proportion_confint(share * number, number, method="wilson")), abs=1e-12)


def test_units_by_themselves_by_hand() -> None:
    """One of four succeeds: deviations of 3/16 and three times -1/16, a variance of 4/3 * 12/256 = 1/16, and 3/16 over
    that is an effective number of 3."""
    assert rate([1, 0, 0, 0], [1, 1, 1, 1], "abcd") == wilson(0.25, 3)


def test_clusters_by_hand() -> None:
    """One of one and none of three: deviations of 3/16 and -3/16, a variance of 2 * 18/256 = 9/64, so 4/3 effective.

    A cluster without trials counts for nothing; that units of a cluster are listed one by one changes nothing.
    """
    assert rate([1, 0], [1, 3], "ab") == wilson(0.25, 4 / 3)
    assert rate([1, 0, 0], [1, 3, 0], "abc") == wilson(0.25, 4 / 3)
    assert rate([0, 1, 0, 0], [1, 1, 1, 1], "babb") == wilson(0.25, 4 / 3)


def test_the_effective_number_is_at_most_that_of_trials() -> None:
    """Clusters that are more alike than chance allows: 2 of 4 each, which do not vary at all, or 2, 2, 2 and 1 of 4."""
    assert rate([2, 2, 2], [4, 4, 4], "abc") == wilson(0.5, 12)
    assert rate([2, 2, 2, 1], [4, 4, 4, 4], "abcd") == wilson(7 / 16, 16)


def test_where_nothing_varies_clusters_count() -> None:
    """None or all of six trials in three clusters are worth three trials; a single cluster is worth one."""
    assert rate([0, 0, 0, 0], [2, 2, 2, 0], "abcd") == wilson(0, 3)
    assert rate([2, 2, 2, 0], [2, 2, 2, 0], "abcd") == wilson(1, 3)
    assert rate([1, 0], [4, 0], "ab") == wilson(0.25, 1)


def test_bounds_hold_the_share() -> None:
    """Between 0 and 1, whatever the last bits say."""
    for total in range(1, 40):
        for share in (0, total):
            found = clustered_rate(np.array([share]), np.array([total]), ["a"])
            assert 0 <= found.low <= found.value <= found.high <= 1


def test_nothing_has_no_share() -> None:
    """No trials, no rate."""
    assert np.isnan(rate([0, 0], [0, 0], "ab")).all()
