"""The answer in two sentences, the format of probabilities, and the factors of a grid."""

import dataclasses
import math

import pytest

from harness.evaluation.results import TrialResult
from reports import Best, Comparison, Row
from reports.answer import answer
from reports.comparison import footnotes
from reports.factors import factors
from reports.numbers import probability


def row(name: str, difference: float, verdict: str, **others: object) -> Row:
    low, high = difference - 0.02, difference + 0.02
    made = Row(
        name=name,
        mean=0.5 + difference,
        mean_min=0.5 + difference,
        mean_max=0.5 + difference,
        low=0.4,
        high=0.6,
        difference=difference,
        difference_low=low,
        difference_high=high,
        alone_low=low,
        alone_high=high,
        p=0.012,
        p_alone=0.01,
        p_holm=0.02,
        verdict=verdict,  # type: ignore[arg-type]
        no_interval="",
        matters="",
        needed=math.nan,
        p_best=0.5,
        may_be_best=True,
        losses={},
        context_tokens=100.0,
        complete=40,
    )
    return dataclasses.replace(made, **others)  # type: ignore[arg-type]


def comparison(*rows: Row, margin: float = 0.0, corrected: float = 0.55) -> Comparison:
    best = max(rows, key=lambda one: one.mean)
    names = [one.name for one in rows if one.may_be_best]
    chosen = Best(best.name, best.mean, corrected, 0.4, 0.6, names)
    return Comparison("?", "recall@5", "b", rows, chosen, 40, 0, 0, 20, "documents", 1.0, margin, 0.03, False, [])


BASELINE = row("b", 0.0, "baseline")


def test_equal_means_are_counted() -> None:
    """The first of them is not named alone."""
    made = comparison(BASELINE, row("x", 0.1, "cannot tell"), row("y", 0.1, "cannot tell"), row("z", 0.1, "worse"))
    assert "'x' and 2 other trials share the highest mean (0.600" in answer(made)
    assert "highest mean: 'x' and 2 other trials, 0.600" in " ".join(footnotes(made))
    assert "'x' has the highest mean" in answer(comparison(BASELINE, row("x", 0.1, "better")))


def test_better() -> None:
    """The largest significant difference, with its interval and p; the others are counted."""
    found = answer(comparison(BASELINE, row("x", 0.1, "better"), row("y", 0.05, "better"), row("z", -0.2, "worse")))
    assert found == (
        "On 40 queries, 'x' is better than the baseline 'b': recall@5 +0.100 (95 % CI +0.080 … +0.120, adjusted "
        "p = .012); 1 other trial is also better. 'x' has the highest mean (0.600, 0.550 corrected for selection); "
        "3 other trials cannot be separated from it."
    )


def test_with_a_margin() -> None:
    """Better than the baseline is not yet better by the margin."""
    made = comparison(BASELINE, row("x", 0.1, "better", matters="cannot tell"), margin=0.09)
    assert "adjusted p = .012), which may be less than the margin of 0.09." in answer(made)
    sure = comparison(BASELINE, row("x", 0.1, "better", matters="yes"), margin=0.05)
    assert "adjusted p = .012), which is more than the margin of 0.05." in answer(sure)


def test_worse_only() -> None:
    """No winner is named if all other trials are worse."""
    found = answer(comparison(BASELINE, row("x", -0.1, "worse", may_be_best=False), corrected=0.5))
    assert found == (
        "On 40 queries, no trial is better than the baseline 'b' in recall@5, and 1 trial is worse. "
        "'b' has the highest mean (0.500); all others can be separated from it."
    )


def test_cannot_tell() -> None:
    """The number of queries needed is given."""
    rows = row("x", 0.01, "cannot tell", needed=1200.0), row("y", 0.0, "cannot tell", needed=900.0)
    found = answer(comparison(BASELINE, *rows))
    assert "no trial can be distinguished from the baseline 'b' in recall@5." in found
    assert found.endswith("detecting a difference of 0.03 would take 900 to 1,200 similar queries.")


def test_one_trial_and_a_withheld_mean() -> None:
    """Nothing to compare; nothing to rank by."""
    assert answer(comparison(BASELINE)).endswith("There is nothing to compare it with.")
    nan = row("b", 0.0, "baseline", mean=math.nan)
    found = answer(comparison(nan, row("x", math.nan, "cannot tell", mean=math.nan)))
    assert found.endswith("Too many judgments are missing to say which trial has the highest mean.")


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, "0"), (1.0, "1"), (0.0004, "<.001"), (0.049, ".049"), (0.5, ".50"), (0.997, ">.99"), (math.nan, "–")],
)
def test_probabilities_are_never_rounded_to_certainty(value: float, expected: str) -> None:
    """0 and 1 are shown only for exactly 0 and 1."""
    assert probability(value) == expected


def trial(**params: str) -> TrialResult:
    return TrialResult("t", "t", {name.replace("__", "."): value for name, value in params.items()}, [], [], {}, [])


def test_crossed_settings_are_separate_factors() -> None:
    """Two chunkers at two sizes are two factors; sizes that only one of them has are levels of one factor."""
    crossed = [trial(chunker=c, chunker__size=s) for c in ("fixed", "sentence") for s in ("1", "2")]
    assert factors(crossed) == {
        "chunker": ["fixed", "fixed", "sentence", "sentence"],
        "chunker.size": ["1", "2", "1", "2"],
    }
    ragged = [trial(chunker="fixed", chunker__size="1"), trial(chunker="fixed", chunker__size="2"), trial(chunker="md")]
    assert factors(ragged) == {"chunker": ["fixed size=1", "fixed size=2", "md"]}
