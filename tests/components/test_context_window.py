"""Allocation of a context window."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.components.context_window import Allocation, allocate
from harness.components.selectors import ContextBudget
from harness.core.errors import ConfigError
from harness.experiment.catalog import checked


def test_the_example_of_the_source() -> None:
    """128,000 minus 2,000 response, 800 system, 500 query, 5 x 500 history."""
    assert allocate(128_000, turns=5, system=800) == Allocation(800, 2500, 500, 2000, 122_200)
    assert ContextBudget(turns=5, system=800).allocation.context == 122_200


def test_small_windows() -> None:
    """An eighth for the response, at most a quarter for the history, for any number of turns."""
    assert allocate(4000, turns=100, system=200, query=100) == Allocation(200, 1000, 100, 500, 2200)


@given(st.integers(0, 10**6), st.integers(0, 1000), st.integers(0, 10**5), st.integers(0, 10**5))
def test_the_parts_add_up_to_the_window(window: int, turns: int, system: int, query: int) -> None:
    """If nothing is left for context, the window is rejected."""
    left = window - min(2000, window // 8) - min(500 * turns, window // 4) - system - query
    if left <= 0:
        with pytest.raises(ConfigError, match="leaves nothing for context"):
            allocate(window, turns=turns, system=system, query=query)
        return
    made = allocate(window, turns=turns, system=system, query=query)
    assert made.window == window
    assert min(made) >= 0
    assert made.context == left


def test_a_window_that_is_too_small_is_rejected_in_the_file() -> None:
    """The message names all parts."""
    message = "x: a window of 1000 tokens leaves nothing for context: system 500, history 0, query 500, response 125"
    with pytest.raises(ConfigError, match=message):
        checked(ContextBudget, {"window": 1000}, where="x")
    with pytest.raises(ConfigError, match="must not be negative"):
        allocate(-1)
