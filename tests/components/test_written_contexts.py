"""Contexts written by a model: what is asked, in which order, what is accepted, and what is paid."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openai_server import Asked, Raw, Server, default_server

from harness import Experiment, Trial, plan, run
from harness.components.augmenters import Heading, NoContext, Situate, Summary
from harness.components.augmenters.writing import checked_context, excerpt
from harness.components.chunkers import Fixed
from harness.components.retrievers import BM25
from harness.core.errors import JudgeError
from harness.core.records import Document
from harness.llm import Completion, Failure
from harness.running.launch_history import stored_launch
from harness.running.models import Models

TEXT = "# Bread\n\nThe loaf bakes for 40 minutes at 230 degrees.\n\n# Soup\n\nThe soup simmers for two hours."
DOC = Document("d", TEXT, "Kitchen")


def context_of(asked: Asked) -> Any:
    """The first words of the document, and of the passage if there is one."""
    words = " ".join(asked.fenced["document"].split()[:12])
    return {asked.slots[0]: {"text": f"Here is the context: {words} {asked.fenced.get('passage', '')[:30]}"}}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    with default_server(monkeypatch, context_of) as running:
        yield running


def study(base_dir: Path, *augmenters: Any) -> Experiment:
    base = Trial("garden", Fixed(20), BM25(), tokenizer="words", metrics=("recall@3",))
    return Experiment("written", base, {"augmenter": list(augmenters)}, base_dir=base_dir)


def test_one_call_per_chunk_and_one_per_document(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """Planned, made once, shared by trials, none on a second run; contexts are indexed but not counted as evidence."""
    lines: list[str] = []
    made = study(tmp_path, NoContext(), Heading(), Situate("m"), Summary("m"))
    planned = plan(made, store=tmp_path / "s", models=Models(price=(1, 2)))
    assert server.asked == []
    launch = run(made, store=tmp_path / "s", log=False, notify=lines.append, models=Models(price=(1, 2), budget=1))
    chunks = int(launch.results[0].efficiency["chunks"])
    assert [len(server.calls), launch.judging_report.spend.calls] == [chunks + 6] * 2
    assert lines == list(planned.calls)[:2]
    assert lines[0].startswith(f"situate (m): {chunks} calls")
    assert lines[1].startswith("summary (m): 6 calls")
    situated = launch.results[2]
    assert situated.efficiency["context_tokens"] > launch.results[0].efficiency["context_tokens"]
    assert situated.params["augmenter.model"] == "m"
    server.asked.clear()
    again = run(made, store=tmp_path / "s", log=False, workers=2)
    assert server.asked == []
    assert [r.means() for r in again.results] == [r.means() for r in launch.results]
    assert stored_launch(made, store=tmp_path / "s").results[2].means() == situated.means()


def test_the_document_comes_first_and_its_first_call_is_sent_alone(
    server: Server, garden_data: Path, tmp_path: Path
) -> None:
    """No second call about a document before the first is answered; all its calls begin with the same bytes."""
    under_way: dict[str, int] = {}
    together: set[str] = set()
    answered: set[str] = set()

    def watching(asked: Asked) -> Any:
        document = asked.fenced["document"]
        if document not in answered and under_way.get(document):
            together.add(document)
        under_way[document] = under_way.get(document, 0) + 1
        answered.add(document)
        return context_of(asked)

    server.behave = watching
    run(study(tmp_path, Situate("m")), store=tmp_path / "s", log=False)
    assert not together
    by_document: dict[str, list[str]] = {}
    for asked in server.calls:
        by_document.setdefault(asked.fenced["document"], []).append(asked.user)
    assert len(by_document) == 6
    for prompts in by_document.values():
        heads = {prompt.partition("The passage:")[0] for prompt in prompts}
        assert len(prompts) > 1
        assert len(heads) == 1


def test_later_calls_about_a_document_run_in_parallel(server: Server, make_data: Any, tmp_path: Path) -> None:
    """One document, many chunks: after the first call, as many in parallel as allowed."""
    text = " ".join(f"Row {n} grows beside row {n + 1} and needs water." for n in range(60))
    make_data([{"id": "d", "text": text}], [{"id": "q", "text": "row?", "evidence": []}], name="garden")
    flying, most = [0], [0]
    original = server._answer

    async def counted(raw: Raw, writer: Any) -> bool:
        flying[0] += 1
        most[0] = max(most[0], flying[0])
        for _ in range(200):  # lets every pending request arrive
            await asyncio.sleep(0.0001)
        flying[0] -= 1
        return await original(raw, writer)

    server._answer = counted  # type: ignore[method-assign]
    run(study(tmp_path, Situate("m", concurrency=4)), store=tmp_path / "s", log=False)
    assert most[0] == 4


def test_contexts_that_trials_share_are_asked_once(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """One summary per document, for any chunker."""
    base = study(tmp_path, Summary("m")).base
    made = Experiment("written", replace(base, augmenter=Summary("m")), {"chunker.size": [20, 30]}, base_dir=tmp_path)
    lines: list[str] = []
    run(made, store=tmp_path / "s", log=False, notify=lines.append)
    assert lines[0].startswith("summary (m): 6 calls")
    assert len(server.calls) == 6


def test_failures_stop_before_anything_is_indexed(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """No trial runs with only some of its contexts; the next run asks only for the missing ones."""
    good: list[Asked] = []

    def breaking(asked: Asked) -> Any:
        if len(good) >= 5:
            return Raw(500, b"", {"x-should-retry": "false"})
        good.append(asked)
        return context_of(asked)

    server.behave = breaking
    made = study(tmp_path, Situate("m"))
    with pytest.raises(JudgeError, match="chunks have no context, such as server"):
        run(made, store=tmp_path / "s", log=False)
    server.behave = context_of
    server.asked.clear()
    launch = run(made, store=tmp_path / "s", log=False)
    assert len(server.calls) == int(launch.results[0].efficiency["chunks"]) - 5
    assert launch.warnings == []


def test_a_few_may_fail_and_are_reported(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """Below `max_failed`, those chunks have no context, and the results report it."""
    server.behave = lambda asked: (
        {"context": {"text": "I'm sorry, I cannot help with that."}}
        if asked.fenced["passage"].startswith("Amber row 0-0")
        else context_of(asked)
    )
    launch = run(study(tmp_path, Situate("m", max_failed=0.2)), store=tmp_path / "s", log=False)
    assert any("have no context: the model gave no valid one" in warning for warning in launch.warnings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The loaf of the kitchen bakes for 40 minutes.", "The loaf of the kitchen bakes for 40 minutes."),
        ("Here is the context: Bread bakes at 230 degrees.", "Bread bakes at 230 degrees."),
        ("Sure! Here's a short context for the passage:\n\n“Soup simmers.”", "Soup simmers."),
        ("Context: Soup  simmers\nfor two hours.", "Soup simmers for two hours."),
        ("", "schema"),
        ("Here is the context: ", "schema"),
        ("word " * 400, "schema"),
        ("I'm sorry, but I cannot do that.", "refusal"),
        ("The loaf bakes for 45 minutes.", "evidence_unverified"),
        ("Quantum chromodynamics governs hadrons.", "evidence_unverified"),
    ],
)
def test_which_contexts_are_accepted(text: str, expected: str) -> None:
    """Opening phrases are removed; refusals, long retellings and ungrounded words or numbers are failures."""
    found = checked_context(text, f"{DOC.title}\n{TEXT}", 0.8)
    assert (found.text if isinstance(found, Completion) else found.kind) == expected
    assert isinstance(found, Completion | Failure)


def test_a_long_document_is_shown_in_part_with_its_outline() -> None:
    """The excerpt has the outline, the part around the chunk, and its position, so truncation is visible."""
    long = Document("d", "# One\n\n" + "alpha " * 3000 + "\n# Two\n\n" + "omega " * 3000)
    start = long.text.index("omega")
    shown = excerpt(long, start, start + 60, 4000)
    assert len(shown) < 4200
    assert "# One\n# Two" in shown
    assert "omega" in shown
    assert f"of {len(long.text)}]" in shown
    assert excerpt(DOC, 0, 5, 4000) == TEXT


def test_contexts_of_equal_chunks_in_equal_documents_are_asked_once() -> None:
    """Tasks depend on content, not on document ids; another title is another task."""
    situate = Situate("m")
    same = Document("other-id", TEXT, "Kitchen")
    assert situate.addresses(situate.tasks(DOC, [(0, 20)])) == situate.addresses(situate.tasks(same, [(0, 20)]))
    titled = Document("d", TEXT, "Cellar")
    assert situate.addresses(situate.tasks(DOC, [(0, 20)])) != situate.addresses(situate.tasks(titled, [(0, 20)]))
