"""The chunker and the augmenters that call a model: what is asked, accepted, reported and paid."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openai_server import Asked, Server, default_server

from harness import Experiment, Trial, plan, run
from harness.components.augmenters import Neighbors, NoContext, Questions
from harness.components.chunkers import Llm
from harness.components.retrievers import BM25
from harness.core.errors import JudgeError
from harness.core.records import Document, TokenMap
from harness.core.tokenizer import Tokenizer
from harness.llm import Completion, Failure, Task
from harness.running.models import Models

WORDS = Tokenizer("words")
TEXT = " ".join(f"Piece {n} is here." for n in range(20))
DOC = Document("d", TEXT, "Pieces", tokens=TokenMap(WORDS.starts(TEXT)))
CHUNKER = Llm("m", size=40, piece=5, window=6, margin=2)


def numbers(asked: Asked) -> tuple[int, int]:
    found = re.search(r"pieces (\d+) to (\d+) does", asked.user)
    assert found
    return int(found[1]), int(found[2])


def every_third(asked: Asked) -> Any:
    first, last = numbers(asked)
    return {"division": {"begins": [at for at in range(first, last + 1) if at % 3 == 0]}}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with default_server(monkeypatch, every_third) as running:
        yield running


def study(base_dir: Path, **parts: Any) -> Experiment:
    base = Trial("garden", parts.pop("chunker", CHUNKER), BM25(), tokenizer="words", metrics=("recall@3",), **parts)
    return Experiment("asking", base, base_dir=base_dir)


def test_every_gap_is_decided_once() -> None:
    """20 pieces, 19 gaps, windows of six with two pieces of margin: the last window has one gap."""
    tasks = CHUNKER.tasks(DOC)
    shown = [(len(task.texts), task.item) for task in tasks]
    # The first window begins with piece 1: its margin is piece 0 alone.
    assert shown == [(9, "1-7"), (10, "2-8"), (9, "2-8"), (3, "2-3")]
    assert tasks[1].texts[0] == "Piece 5 is here."


def test_cuts_by_hand() -> None:
    """A cut before pieces 3, 7 and 13, numbered as each window shows them; the size is not reached."""
    answers = [Completion(("3",)), Completion(("2",)), Completion(("2",)), Completion(())]
    chunks = [TEXT[start:end] for start, end in CHUNKER.join(DOC, answers)]
    assert [re.findall(r"\d+", chunk)[0] for chunk in chunks] == ["0", "3", "7", "13"]
    assert " ".join(chunks) == TEXT


def test_a_missing_answer_leaves_cuts_to_the_size() -> None:
    """Forty tokens are eight pieces; no text is lost."""
    chunks = [TEXT[start:end] for start, end in CHUNKER.join(DOC, [Failure("timeout")] * 4)]
    assert " ".join(chunks) == TEXT
    assert [len(re.findall(r"\d+", chunk)) for chunk in chunks] == [8, 8, 4]


def test_only_numbers_that_were_asked_about_count() -> None:
    """The schema lists them; a number given twice counts once."""
    task = CHUNKER.tasks(DOC)[0]
    prompt = CHUNKER.prompt((task,))
    begins = prompt.schema.json_schema(["division"])["properties"]["division"]["properties"]["begins"]
    assert begins["items"]["enum"] == [1, 2, 3, 4, 5, 6]
    assert CHUNKER.read(task, {"begins": (2, 1, 2)}, prompt) == Completion(("1", "2"))
    assert all(f"{number}]\n{text}" in prompt.user for number, text in enumerate(task.texts))


def test_the_chunker_in_a_launch(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """Planned, asked once, capped, stored; offsets are exact; a second run works without a server."""
    made = study(tmp_path)
    planned = plan(made, store=tmp_path / "s", models=Models(price=(1, 2)))
    assert planned.calls[0].startswith("llm (m): ")
    assert planned.calls[-1] == "what else to embed, retrieve and judge is known once the documents are chunked"
    assert server.asked == []
    lines: list[str] = []
    launch = run(made, store=tmp_path / "s", log=False, notify=lines.append, models=Models(price=(1, 2), budget=1))
    assert lines == list(planned.calls[:1])
    assert launch.judging_report.spend.calls == len(server.calls) > 6
    assert launch.results[0].efficiency["chunks"] > 12
    server.asked.clear()
    again = run(made, store=tmp_path / "s", log=False, workers=2, models=Models(offline=True))
    assert server.asked == []
    assert again.results[0].means() == launch.results[0].means()
    # A larger size asks nothing new: the answers are about pieces.
    run(study(tmp_path, chunker=replace(CHUNKER, size=90)), store=tmp_path / "s", log=False)
    assert len(server.calls) == 0


def test_a_chunker_without_answers_stops_or_reports_it(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """There is no silent default."""

    def half(asked: Asked) -> Any:
        return every_third(asked) if numbers(asked)[0] == 1 else "no JSON"

    server.behave = half
    with pytest.raises(JudgeError, match=r"chunker llm: \d+ of \d+ questions have no answer, such as invalid_json"):
        run(study(tmp_path), store=tmp_path / "s", log=False)
    launch = run(study(tmp_path, chunker=replace(CHUNKER, max_failed=1.0)), store=tmp_path / "s", log=False)
    warning = r"\d+ of \d+ questions about chunk boundaries have no answer"
    assert any(re.search(warning, message) for message in launch.warnings)


STEP = Questions("m", n=3)
TASK = Task("", ("The loaf bakes for 40 minutes at 230 degrees.",), "3", "Bread")


def read(*questions: str) -> Any:
    return STEP.read(TASK, {"questions": questions}, STEP.prompt((TASK,)))


def test_questions_that_the_passage_supports() -> None:
    """Numbering and repetitions are removed; text that is no question or adds facts of its own is rejected."""
    good = "How long does the loaf bake?"
    assert read(good) == Completion((good,))
    assert read(f"1. {good}", good, "At 230 degrees, what bakes?") == Completion(
        (f"{good}\nAt 230 degrees, what bakes?",)
    )
    assert read(good, "It bakes for 40 minutes.", "Does the loaf bake for 50 minutes?") == Completion((good,))
    failure = read("Which emperor invented sourdough crackers?")
    assert isinstance(failure, Failure)
    assert "content words are not in the document" in failure.detail
    assert read() == Failure("schema", "no questions")


def test_questions_are_indexed_and_not_credited(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """One call per chunk; the context counts as tokens but not as evidence."""

    def prompter(asked: Asked) -> Any:
        words = " ".join(asked.fenced["passage"].split()[:5]).rstrip(".,")
        return {"questions": {"questions": [f"What about {words}?"]}}

    server.behave = prompter
    made = study(tmp_path, chunker=Llm("m"), augmenter=NoContext())
    from harness.components.chunkers import Fixed

    plain = run(study(tmp_path, chunker=Fixed(20)), store=tmp_path / "s", log=False).results[0]
    asked = run(study(tmp_path, chunker=Fixed(20), augmenter=STEP), store=tmp_path / "s", log=False).results[0]
    assert len(server.calls) == plain.efficiency["chunks"]
    assert asked.efficiency["context_tokens"] > plain.efficiency["context_tokens"]
    assert made.base.augmenter == NoContext()


NEIGHBOURS = "One is here. Two is here. Three is here. Four is here."


@pytest.mark.parametrize(
    ("span", "step", "context"),
    [
        ((13, 25), Neighbors(), "One is here. … Three is here."),
        ((13, 25), Neighbors(2, 2), "One is here. … Three is here. Four is here."),
        ((13, 25), Neighbors(0, 1), "Three is here."),
        ((0, 12), Neighbors(), "Two is here."),
        ((17, 30), Neighbors(), "One is here. Two … e is here. Four is here."),  # cut inside two sentences
        ((0, len(NEIGHBOURS)), Neighbors(), ""),
    ],
)
def test_neighbours(span: tuple[int, int], step: Neighbors, context: str) -> None:
    """Sentences before and after; the rest of a cut sentence is included."""
    assert step.augment(Document("d", NEIGHBOURS), [span]) == [context]
