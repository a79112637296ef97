"""How much of each trial's first passages was judged, across systems that share passages."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from judged_experiments import behave, study
from openai_server import Server

from harness import Experiment, Trial, run
from harness.components.chunkers import Fixed, NoChunker
from harness.components.retrievers import BM25, PassageRun
from harness.components.selectors import TopK
from harness.data.manifest import read_manifest
from judges import ContextPrecision, HeuristicPrecision
from reports.compare import compare
from reports.page import page
from reports.pool import ASSESSORS, pool_of

HERBS = ["anise", "basil", "cumin", "dill", "endive", "fennel"]
DOCUMENTS = [{"id": f"d{at}", "text": f"Text {word} about {word}."} for at, word in enumerate(HERBS)]
QUERIES = [
    {"id": "q1", "text": "anise basil", "evidence": [{"doc": "d0"}], "irrelevant": ["d1"]},
    {"id": "q2", "text": "cumin dill endive", "evidence": [{"doc": "d2"}]},
]


def test_judgments_of_the_data_set(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """Of the first two passages of both queries: d0 and d1 are judged for q1, and only d2 for q2."""
    root = make_data(DOCUMENTS, QUERIES, name="pool")
    lines = [
        {
            "query": "q1",
            "passages": ["Text anise about anise.", "Text fennel about fennel.", "Text basil about basil."],
        },
        {"query": "q2", "passages": [{"doc": "d2", "start": 0, "end": 23}, "Not in the corpus at all."]},
    ]
    (root / "theirs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    manifest = root / "manifest.yaml"
    manifest.write_text(manifest.read_text() + "runs:\n  theirs: {file: theirs.jsonl}\n")
    assert read_manifest(root).run("theirs")
    ours = Trial(str(root), Fixed(50), BM25(depth=4), tokenizer="words", metrics=("recall@2",), selector=(TopK(k=4),))
    theirs = replace(ours, chunker=NoChunker(), retriever=PassageRun("theirs", depth=4))
    grid = [{"chunker": [ours.chunker], "retriever": [ours.retriever]}]
    grid.append({"chunker": [theirs.chunker], "retriever": [theirs.retriever]})
    launch = run(Experiment("t", ours, grid), store=tmp_path / "s", log=False)
    found = pool_of(launch, "recall@2", [0, 1])
    assert found is not None
    assert found.depth == 2
    one, other = found.trials
    # BM25 finds d0 and d1 for q1; d2 and one of d3 and d4 for q2.
    assert (one.passages, one.judged) == (4, {ASSESSORS: 0.75})
    assert (other.passages, other.judged) == (4, {ASSESSORS: 0.5})
    # d0 and d2 are in both.
    assert one.only == other.only == 0.5
    assert found.distinct == 6
    shown = page(launch, compare(launch), None)
    assert "Judged passages" in shown
    assert "judged: data set" in shown
    assert "60.0%" in shown  # of all five of BM25: the primary metric has a token budget


def test_judges(garden_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each distinct passage of a query is judged once, whatever trials selected it; failures are not judged."""
    with Server(behave) as server:
        experiment = study(garden_data.parent, ContextPrecision("m", batch=4), grid={"selector.k": [2, 4]})
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        launch = run(experiment, store=tmp_path / "s", log=False)
        asked = [
            (one.user.partition("Passages:")[0].split("\n")[2], one.fenced[slot])
            for one in server.asked
            for slot in one.slots
        ]
    assert len(asked) == len(set(asked)) > 0
    found = pool_of(launch, "recall@3", [0, 1])
    assert found is not None
    assert found.depth == 3
    two, four = found.trials
    assert two.judged == {"context_precision": 1.0}
    assert four.judged == {"context_precision": 1.0}
    assert two.only == 0
    assert 0.2 < four.only < 0.4  # the third passage of each query, if there is one


def test_without_judgments(garden_data: Path, tmp_path: Path) -> None:
    """A data set that lists evidence only says nothing of what else was looked at: no section."""
    experiment: Any = study(garden_data.parent, HeuristicPrecision(), grid={"selector.k": [2, 4]})
    plain = replace(experiment, base=replace(experiment.base, judges=()))
    launch = run(plain, store=tmp_path / "s", log=False)
    assert pool_of(launch, "recall@3", [0, 1]) is None
    assert "Judged passages" not in page(launch, compare(launch), None)
