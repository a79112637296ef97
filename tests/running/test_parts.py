"""A large corpus is tokenized, cut, indexed and searched in several tasks, which changes nothing."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from harness import Chunker, ConfigError, Document, Experiment, Spans, Trial, run
from harness.components.chunkers import Fixed, Recursive
from harness.components.embedders import Hashing
from harness.components.retrievers import BM25, Dense, Hybrid
from harness.core import memory
from harness.core.rankings import Rankings
from harness.running.session import Session
from harness.running.stages import retrieve, trial_stages
from harness.running.stages.chunk import ChunkPart
from harness.running.stages.ranking_checks import overlap, read_rankings

BASE = Trial("garden", Fixed(size=20), BM25(depth=5), tokenizer="words", metrics=("recall@3",))


@dataclass(frozen=True)
class Nothing(Chunker):
    """Returns no chunk."""

    def split(self, doc: Document) -> Spans:
        return []


@pytest.fixture
def base(garden_data: Path) -> Trial:
    return replace(BASE, data=str(garden_data))


@pytest.mark.parametrize("workers", [1, 2])
def test_parts_make_the_same_chunks(base: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    """In this process and in others, at the same address; each part is made once."""
    retrievers = [BM25(depth=5), BM25(depth=5, variant="okapi"), Dense(5), Dense(5, similarity="dot"), Hybrid(5)]
    grid = {"chunker": [Fixed(size=20), Recursive(size=10)], "retriever": retrievers}
    experiment = Experiment("parts", replace(base, embedder=Hashing(64)), grid)
    run(experiment, store=tmp_path / "whole", log=False)
    size = Session(experiment, tmp_path / "whole").corpus_bytes
    monkeypatch.setattr(trial_stages, "PART_BYTES", size // 7)
    launch = run(experiment, store=tmp_path / "parts", log=False, workers=workers)
    made = {name: launch.work[name] for name in ("tokenize_part", "chunk", "chunk_part", "index_part", "retrieve_part")}
    # Of each chunking, two indexes of BM25, one of them shared with the hybrid, and three dense rankings.
    assert made == {"tokenize_part": 7, "chunk": 2, "chunk_part": 14, "index_part": 28, "retrieve_part": 42}
    whole, parts = (Session(experiment, tmp_path / name) for name in ("whole", "parts"))
    for one, other in zip(whole.trials, parts.trials, strict=True):
        first, second = whole.outputs(one), parts.outputs(other)
        assert second.stages.chunks.parts == 7
        assert second.stages.chunks.address == first.stages.chunks.address
        for name in ("chunks", "rankings"):
            before, after = (getattr(found.stages, name).read(found.work).arrays for found in (first, second))
            assert all(np.array_equal(before[key], after[key]) for key in before if key != "ms")
    assert not run(experiment, store=tmp_path / "parts", log=False).work


def test_more_parts_than_documents(base: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some are empty."""
    monkeypatch.setattr(trial_stages, "PART_BYTES", 20)
    launch = run(Experiment("parts", base, []), store=tmp_path / "s", log=False)
    assert launch.session is not None
    outputs = launch.session.outputs(launch.session.trials[0])
    parts = [part for part in outputs.stages.chunks.inputs if isinstance(part, ChunkPart)]
    assert len(parts) > len(outputs.data.documents)
    sizes = [len(part.read(outputs.work).arrays["doc"]) for part in parts]
    assert min(sizes) == 0
    assert sum(sizes) == len(outputs.passages)


def test_no_chunk_in_any_part(base: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same error as without parts."""
    monkeypatch.setattr(trial_stages, "PART_BYTES", 1000)
    with pytest.raises(ConfigError, match="chunker nothing: returned no chunk for any of"):
        run(Experiment("parts", replace(base, chunker=Nothing()), []), store=tmp_path / "s", log=False)


def test_ignored_documents_in_any_part(
    make_data: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are left out, and others take their places, wherever they are."""
    documents = [{"id": f"d{at}", "text": f"Salt water number {at}."} for at in range(12)]
    queries = [{"id": f"q{at}", "text": "salt water", "ignore": [f"d{at}", "d11"]} for at in (0, 5, 11)]
    queries.append({"id": "q", "text": "salt number 7", "evidence": [{"doc": "d7"}]})
    root = make_data(documents, queries)
    retrievers = [BM25(depth=4), Dense(4)]
    trial = replace(BASE, data=str(root), embedder=Hashing(64), chunker=Fixed(size=100), metrics=("recall@3",))
    experiment = Experiment("ignored", trial, {"retriever": retrievers})
    found = []
    for bytes_, store in ((10**9, "whole"), (100, "parts")):
        monkeypatch.setattr(trial_stages, "PART_BYTES", bytes_)
        launch = run(experiment, store=tmp_path / store, log=False)
        assert launch.session is not None
        outputs = [launch.session.outputs(one) for one in launch.session.trials]
        found.append([one.rankings.arrays for one in outputs])
    for before, after in zip(*found, strict=True):
        assert all(np.array_equal(before[key], after[key]) for key in before if key != "ms")
        rows = [before["ids"][lo:hi].tolist() for lo, hi in pairwise(before["offsets"])]
        assert [len(set(row)) for row in rows[:3]] == [4, 4, 4]
        assert not any({at, 11} & set(row) for at, row in zip((0, 5, 11), rows, strict=False))


def test_vectors_beyond_memory(base: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A retriever that holds them all is refused in one line; exact search by parts is not."""
    monkeypatch.setattr(memory, "machine_memory", lambda: 10_000)
    monkeypatch.setattr(trial_stages, "PART_BYTES", 1000)
    hnsw, flat = (replace(base, retriever=Dense(5, ann=ann), embedder=Hashing(64)) for ann in ("hnsw", "flat"))
    with pytest.raises(
        ConfigError, match="the retriever holds the vectors of all .* chunks in memory, .*; use `dense`"
    ):
        run(Experiment("hnsw", hnsw, []), store=tmp_path / "s", log=False)
    assert run(Experiment("flat", flat, []), store=tmp_path / "s", log=False).results


def test_exact_search_for_a_sample(base: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a very large corpus, approximate search is compared with exact search on every n-th query, part by part."""
    trial = replace(base, retriever=Dense(5, ann="ivf", lists=9, probes=1), embedder=Hashing(64), chunker=Fixed(size=3))
    with_all = run(Experiment("sample", trial, []), store=tmp_path / "all", log=False)
    monkeypatch.setattr(trial_stages, "PART_BYTES", 1000)
    monkeypatch.setattr(retrieve, "_LARGE", 1)
    monkeypatch.setattr(retrieve, "_SAMPLE", 4)
    sampled = run(Experiment("sample", trial, []), store=tmp_path / "sampled", log=False)
    one, other = (launch.session.outputs(launch.session.trials[0]) for launch in (with_all, sampled) if launch.session)
    ranked, all_exact, exact = (
        read_rankings(stage.read(outputs.work))
        for stage, outputs in (
            (one.stages.rankings, one),
            (one.stages.rankings.exact, one),
            (other.stages.rankings.exact, other),
        )
        if stage
    )
    numbers = list(range(0, ranked.queries, 4))
    assert exact.queries == len(numbers) == 4
    assert [exact.row(at)[0].tolist() for at in range(4)] == [all_exact.row(at)[0].tolist() for at in numbers]
    expected = overlap(Rankings.of([ranked.row(at) for at in numbers]), exact)
    assert sampled.results[0].efficiency["ann_recall"] == expected < 1
    assert with_all.results[0].efficiency["ann_recall"] == overlap(ranked, all_exact)
