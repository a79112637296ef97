"""A large corpus is cut in several tasks, which changes nothing."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from harness import Chunker, ConfigError, Document, Experiment, Spans, Trial, run
from harness.components.chunkers import Fixed, Recursive
from harness.components.retrievers import BM25
from harness.running.session import Session
from harness.running.stages import trial_stages
from harness.running.stages.chunk import ChunkPart

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
    experiment = Experiment("parts", base, {"chunker": [Fixed(size=20), Recursive(size=10)]})
    run(experiment, store=tmp_path / "whole", log=False)
    size = Session(experiment, tmp_path / "whole").corpus_bytes
    monkeypatch.setattr(trial_stages, "PART_BYTES", size // 7)
    launch = run(experiment, store=tmp_path / "parts", log=False, workers=workers)
    assert (launch.work["chunk"], launch.work["chunk_part"]) == (2, 14)
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
