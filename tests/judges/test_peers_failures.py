"""How other tools are known to mishandle failures of a judge, and what must not happen here."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judged_questions import VICTIM, Outcome, case, put
from openai_server import Asked, Raw, Server, grade_all

from harness.evaluation.results import Judged
from harness.llm import Label
from judges import ContextPrecision, ContextRecall


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")


def judged(behave: Any, store: Path, monkeypatch: pytest.MonkeyPatch, about: Any = VICTIM) -> Outcome:
    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        return put([about], store)


def value(outcome: Outcome, about: Any = VICTIM) -> float | None:
    score = outcome.verdict(about).scores["context_precision"]
    assert score is not None
    return score.value


def test_an_answer_that_cannot_be_parsed_is_not_graded_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """UMBRELA, ARES: if no pattern matches, the passage counts as irrelevant."""
    outcome = judged(lambda _: "The passage seems fine to me.", tmp_path, monkeypatch)
    assert value(outcome) is None
    assert not any(isinstance(one, Label) for one in outcome.judgments.values())


def test_three_labels_for_five_passages_are_not_1_and_none_are_not_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """deepeval: the denominator is the number of verdicts received."""
    about = case("Five?", [f"Passage {at}." for at in range(5)])

    def three(asked: Asked) -> Any:
        missing = [s for s, text in asked.fenced.items() if text in ("Passage 3.", "Passage 4.")]
        return {slot: entry for slot, entry in grade_all(asked).items() if slot not in missing}

    outcome = judged(three, tmp_path / "a", monkeypatch, about)
    score = outcome.verdict(about).scores["context_precision"]
    assert score is not None
    assert (score.value, score.low, score.high) == (None, 0.6, 1.0)
    assert value(judged(lambda _: {}, tmp_path / "b", monkeypatch, about), about) is None


@pytest.mark.parametrize("word", ["unknown", None, "maybe"])
def test_a_label_outside_the_scale_does_not_count_as_irrelevant(
    word: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mlflow: one `unknown` of four turns precision 1.0 into 0.75."""
    about = case("Four?", [f"Passage {at}." for at in range(4)])

    def behave(asked: Asked) -> Any:
        return {s: {"why": "", "grade": word if asked.fenced[s] == "Passage 2." else 3} for s in asked.slots}

    outcome = judged(behave, tmp_path, monkeypatch, about)
    score = outcome.verdict(about).scores["context_precision"]
    assert score is not None
    assert (score.value, score.low, score.high) == (None, 0.75, 1.0)


def test_missing_items_are_not_padded_with_uncovered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RefChecker: missing items become Neutral, which counts as not covered."""
    judge = ContextRecall("m", of="answer")
    made = case("What?", ["Water is wet."])
    about = made.__class__(made.query, (), made.passages, ("The lake is deep.", "The lake is cold."))

    def behave(asked: Asked) -> Any:
        none = {"status": "none", "slots": [], "quote": ""}
        return {s: none for s in asked.slots if "cold" not in asked.fenced[s]}

    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        score = put([about], tmp_path, judge).verdict(about).scores["context_recall"]
    assert score is not None
    assert (score.value, score.low, score.high) == (None, 0.0, 0.5)


def test_no_number_outside_the_scale_enters_a_mean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TruLens: -1 for "failed" among scores from 0 to 1; the smallest number in the text is the grade."""
    minus = judged(lambda a: {s: {"why": "", "grade": -1} for s in a.slots}, tmp_path / "a", monkeypatch)
    assert value(minus) is None
    prose = judged(lambda _: "Of 10 points I give 3, since 2 facts of 0 are wrong.", tmp_path / "b", monkeypatch)
    assert value(prose) is None


def test_failures_do_not_stay_in_the_denominator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nuggetizer: after up to 500 attempts `failed` counts as not found. Here it is a failure after a few attempts."""
    seen: list[Asked] = []

    def behave(asked: Asked) -> Any:
        seen.append(asked)
        return "…"

    assert value(judged(behave, tmp_path, monkeypatch)) is None
    assert len(seen) <= 8


def test_a_mean_over_few_complete_queries_is_withheld(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ragas: every fourth call fails, nine of ten rows are NaN, and the report prints 1.0000."""
    cases = [case(f"Question {at}?", [f"Passage {n} of {at}." for n in range(5)]) for at in range(20)]

    def behave(asked: Asked) -> Any:
        failing = int(asked.question.split()[1].rstrip("?")) % 4 != 0
        return Raw(500, b"", {"x-should-retry": "false"}) if failing else grade_all(asked)

    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put(cases, tmp_path, ContextPrecision("m"))
    scores = [outcome.verdict(about).scores["context_precision"] for about in cases]
    columns = [[np.nan if s is None or s[at] is None else s[at] for s in scores] for at in range(3)]
    mean = Judged("context_precision", *map(np.array, columns), max_failed=0.02)
    assert np.nanmean(mean.values) == 1.0  # the mean that other tools would print
    assert mean.withheld
    assert np.isnan(mean.mean)
    assert (mean.complete, mean.total, mean.bounds) == (5, 20, (0.25, 1.0))


def test_a_single_failure_is_reported_too() -> None:
    """Below the threshold the mean is reported with the number of complete queries and its bounds."""
    values = np.array([1.0] * 99 + [np.nan])
    one = Judged("j", values, np.array([1.0] * 99 + [0.0]), np.ones(100), max_failed=0.02)
    assert (one.mean, one.complete, one.total, one.bounds) == (1.0, 99, 100, (0.99, 1.0))
