"""The recall judge: what is free, what is asked, and which quotes are believed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from courtroom import case, put
from openai_server import Asked, Server

from harness.llm import Failure, Label, Task, Written
from harness.model import Case, Chunk, Evidence, Query, Span
from judges import ContextRecall
from judges.context_recall import Claims

JUDGE = ContextRecall("m")
ITEM = "Bake the loaf for 40 minutes at 230 degrees."
PASSAGES = ["Knead the dough well and let it rest.", "The loaf bakes for forty minutes, at a heat of 230 °C."]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")


def about(items: list[str], passages: list[str]) -> Case:
    """Items of evidence that lie in a document nobody retrieved."""
    evidence = tuple(Evidence((Span("elsewhere", 0, len(item)),)) for item in items)
    made = case("How is it baked?", passages)
    return replace(made, query=replace(made.query, evidence=evidence), evidence=tuple(items))


def said(status: str, slots: list[str], quote: str) -> Any:
    return lambda asked: {slot: {"status": status, "slots": slots, "quote": quote} for slot in asked.slots}


def recall(made: Case, behave: Any, store: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Server, Any]:
    with Server(behave) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        outcome = put([made], store, JUDGE)
    verdict = outcome.verdict(made)
    return verdict.scores["context_recall"], server, verdict


def test_what_stands_in_a_passage_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case, white space and compatibility forms aside."""
    made = about(["bake  the\nLOAF for ４０ minutes"], ["First, Bake the loaf for 40 minutes."])
    score, server, verdict = recall(made, said("none", [], ""), tmp_path, monkeypatch)
    assert score.value == 1.0
    assert server.asked == []
    assert verdict.findings[0].judgments[0].by == "exact"


@pytest.mark.parametrize(
    ("item", "passage"),
    [
        ("5 minutes", "Simmer for 45 minutes."),
        ("No", "Nothing is known."),
        ("Soak for 12 hours.", "Soak for 12 hours."),
    ],
)
def test_short_items_are_not_found_by_their_letters(item: str, passage: str) -> None:
    """A few words stand in many a passage about something else: the model is asked."""
    assert len(JUDGE.tasks(about([item], [passage]))) == 1


def test_items_are_found_as_whole_words_only() -> None:
    """Not as the end of a number."""
    item = "5 minutes over a gentle flame"
    assert len(JUDGE.tasks(about([item], ["Simmer for 45 minutes over a gentle flame."]))) == 1
    assert JUDGE.tasks(about([item], ["Simmer for 5 minutes over a gentle flame."])) == []


def test_typography_does_not_void_a_quote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Curly quotes, long dashes and soft hyphens, which models write their own way."""
    passage = "When the dough isn’t ready – it must dou\u00adble in size – wait."
    behave = said("full", ["c01"], "the dough isn't ready - it must double in size -")
    score, _, _ = recall(about(["The dough has to grow to twice its size."], [passage]), behave, tmp_path, monkeypatch)
    assert score.value == 1.0


def test_covered_places_cost_nothing() -> None:
    """Two chunks that hold nine tenths of the place together; with less, the model is asked."""
    query = Query("q", "Why?", (Evidence((Span("d", 100, 200),)),))
    chunks = (Chunk("d", 80, 150, "x" * 70), Chunk("d", 150, 190, "y" * 40))
    assert JUDGE.tasks(Case(query, ("an item that is nowhere",), chunks)) == []
    assert len(JUDGE.tasks(Case(query, ("an item that is nowhere",), chunks[:1]))) == 1
    overlapping = (Chunk("d", 80, 150, "x" * 70), Chunk("d", 100, 150, "y" * 50))
    assert len(JUDGE.tasks(Case(query, ("an item that is nowhere",), overlapping))) == 1


def test_one_call_for_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three items, one of them exact: one call about two."""
    made = about([PASSAGES[0], ITEM, "Let it cool."], PASSAGES)
    score, server, _ = recall(made, said("none", [], ""), tmp_path, monkeypatch)
    assert [len(asked.slots) for asked in server.calls] == [2]
    assert score.value == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("status", "slots", "quote", "grade"),
    [
        ("full", ["c02"], "bakes for forty minutes", 2),
        ("partial", ["c02"], "BAKES  for forty\nminutes", 1),
        ("full", ["c01", "c02"], "Knead the dough … at a heat of 230 °C.", None),
        ("full", ["c02"], "The loaf bakes … at a heat of 230 °C", 2),
        ("full", ["c02"], "at a heat of 230 °C ... The loaf bakes", None),
        ("full", ["c02"], "The loaf ... bakes ... forty ... minutes", None),
        ("full", ["c02"], "'the loaf bakes for forty minutes,'", 2),
        ("full", ["c02"], "he loaf bakes for forty minutes", None),
        ("full", ["c02"], "“The loaf bakes for forty minutes”", 2),
        ("none", [], "", 0),
        ("none", ["c09"], "whatever", 0),
        ("full", ["c02"], "bakes for fifty minutes", None),
        ("full", ["c01"], "bakes for forty minutes", None),
        ("full", ["c02"], "", None),
        ("full", ["c02"], "the", None),
        ("full", [], "bakes for forty minutes", None),
        ("full", ["c07"], "bakes for forty minutes", None),
        ("partial", ["c02"], "Knead the dough ... for an hour", None),
    ],
)
def test_quotes(
    status: str, slots: list[str], quote: str, grade: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A find is believed only with a quote that stands in a passage named; else it is a failure, not a none."""

    def behave(asked: Asked) -> Any:
        # Slots are sorted by text here, so that c01 is "Knead" and c02 "The loaf".
        assert asked.fenced["c01"].startswith("Knead")
        return said(status, slots, quote)(asked)

    score, _, verdict = recall(about([ITEM], PASSAGES), behave, tmp_path, monkeypatch)
    (judgment,) = verdict.findings[0].judgments
    if grade is None:
        assert isinstance(judgment, Failure)
        assert judgment.kind == "evidence_unverified"
        assert (score.value, score.low, score.high) == (None, 0.0, 1.0)
    else:
        assert isinstance(judgment, Label)
        assert judgment.grade == grade
        assert score.value == (grade == 2)
        assert verdict.scores["context_recall_lenient"].value == grade / 2


def test_a_wrong_quote_is_asked_for_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second answer quotes well."""
    seen: list[int] = []

    def behave(asked: Asked) -> Any:
        seen.append(1)
        return said("full", ["c02"], "bakes for forty minutes" if len(seen) > 1 else "bakes for an hour")(asked)

    score, server, _ = recall(about([ITEM], PASSAGES), behave, tmp_path, monkeypatch)
    assert score.value == 1.0
    assert len(server.calls) == 2


def test_an_empty_retrieval_is_zero_and_asks_no_one() -> None:
    """Recall 0, flagged."""
    empty = about([ITEM], [])
    assert JUDGE.tasks(empty) == []
    verdict = JUDGE.score(empty, {})
    assert verdict.scores["context_recall"].value == 0.0  # type: ignore[union-attr]
    assert verdict.flags == ("empty_retrieval",)


def test_nothing_to_find_is_no_value() -> None:
    """A query without evidence has no recall; it is left out and counted, never 0 and never 1."""
    assert JUDGE.score(about([], PASSAGES), {}).scores["context_recall"] is None


def test_the_order_of_passages_asks_nothing_new() -> None:
    """A reranked selection has the same tasks."""
    made = about([ITEM], PASSAGES)
    assert JUDGE.tasks(made) == JUDGE.tasks(replace(made, passages=made.passages[::-1]))


def test_an_irrelevant_passage_cannot_raise_recall() -> None:
    """A judge that says the same of the item with and without it gives the same score."""
    made = about([ITEM, "Let it cool."], PASSAGES)
    more = replace(made, passages=(*made.passages, Chunk("z", 0, 5, "Foxes")))
    answers = {ITEM: Label(2), "Let it cool.": Label(0)}
    for one in (made, more):
        found = JUDGE.score(one, {task: answers[task.item] for task in JUDGE.tasks(one)})
        assert found.scores["context_recall"].value == 0.5  # type: ignore[union-attr]


def test_more_text_than_a_call_takes_is_asked_in_parts() -> None:
    """Found in one part is found; the label says so."""
    made = about([ITEM], ["a " * 40_000, "b " * 40_000])
    tasks = JUDGE.tasks(made)
    assert len(tasks) > 1
    found = JUDGE.score(made, {task: Label(2 if task == tasks[0] else 0) for task in tasks})
    assert found.scores["context_recall"].value == 1.0  # type: ignore[union-attr]
    assert found.findings[0].judgments[0].flags == ("in parts",)  # type: ignore[union-attr]
    broken = JUDGE.score(made, {task: Label(0) if task == tasks[0] else Failure("timeout") for task in tasks})
    assert broken.scores["context_recall"].value is None  # type: ignore[union-attr]


def test_claims_are_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the answer, with neither blanks nor repeats; an empty list is a failure."""
    asking = Claims("m")
    task = Task("How?", (), "Bake it, then cool it.")
    prompt = asking.prompt((task,))
    assert asking.read(task, {"claims": (" Bake it. ", "", "Bake it.")}, prompt) == Written(("Bake it.",))
    assert isinstance(asking.read(task, {"claims": ("",)}, prompt), Failure)


def test_unknown_claims_leave_everything_open() -> None:
    """No value, bounds 0 to 1."""
    judge = ContextRecall("m", of="answer")
    made = replace(case("How?", PASSAGES, answer="Bake it."), claims=None)
    assert judge.tasks(made) == []
    failed = {Task("How?", (), "Bake it."): Failure("server")}
    score = judge.score(made, failed).scores["context_recall"]
    assert score is not None
    assert (score.value, score.low, score.high) == (None, 0.0, 1.0)
