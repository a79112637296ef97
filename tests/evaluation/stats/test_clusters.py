"""Standard errors and design effects of clusters, by hand."""

import numpy as np
import pytest

from harness.evaluation.stats import design_effect
from harness.evaluation.stats.clusters import standard_errors


def test_standard_errors_by_hand() -> None:
    """Sums of 1 and 3 of a query each have residuals of 1: root of 2 * 2, over 2. So have 3 and 1 of one query and of
    three, of 2: root of 2 * 8, over 4."""
    assert standard_errors(np.array([[1.0, 3.0], [0.0, 6.0]]), np.ones(2)).tolist() == [1, 3]
    assert standard_errors(np.array([[3.0, 1.0], [1.0, 3.0]]), np.array([1.0, 3.0])).tolist() == [1, 0]
    assert np.isnan(standard_errors(np.ones((3, 1)), np.ones(1))).tolist() == [True] * 3


def test_the_design_effect_by_hand() -> None:
    """1, 1, 0 and 0: two documents have a variance of 1/4, four queries (1/3) / 4. Single-query clusters have 1."""
    scores = np.array([[1.0, 1, 0, 0], [0.5, 0.5, 0.5, 0.5]])
    found = design_effect(scores, ["a", "a", "b", "b"])
    assert (found[0], np.isnan(found[1])) == (pytest.approx(3), True)
    assert design_effect(scores[:1], range(4))[0] == pytest.approx(1)
    assert design_effect(np.array([[0.0, 1.0]]), range(2))[0] == pytest.approx(1)


def test_a_single_query_has_no_design_effect() -> None:
    """NaN for every trial, since nothing varies."""
    assert np.isnan(design_effect(np.ones((2, 1)), ["a"])).tolist() == [True, True]
