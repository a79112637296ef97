"""Checks of a data set against the chunkings of an experiment."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness import Chunker, ConfigError, Document, Experiment, Spans, Trial, run
from harness.components.chunkers import Fixed
from harness.components.retrievers import BM25
from harness.running.chunking_checks import suitability

TEXT = "one two three four five six seven eight nine ten. " * 4


def experiment(data: Path, *sizes: int) -> Experiment:
    base = Trial(str(data), Fixed(size=sizes[0]), BM25(), tokenizer="words")
    return Experiment("suits", base, {"chunker": [Fixed(size=size) for size in sizes]})


def test_evidence_that_every_chunking_splits(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """Reported with the fraction that the best chunk holds; evidence that one chunking keeps whole is fine."""
    evidence = [{"doc": "a", "start": 0, "end": 199}, {"doc": "a", "start": 0, "end": 40}]
    data = make_data([{"id": "a", "text": TEXT}], [{"id": "q", "text": "?", "evidence": evidence}])
    (finding,) = suitability(experiment(data, 4, 20), tmp_path / "store")
    assert finding.code == "evidence-cut"
    assert finding.where.endswith("validation.jsonl:1")
    assert finding.what == "query 'q': evidence[0], 199 characters: the best chunk holds 48% of it"


def test_documents_that_all_chunkings_cut_alike(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """Two of three documents fit into one chunk of either size."""
    documents = [{"id": "a", "text": TEXT}, {"id": "b", "text": "short"}, {"id": "c", "text": "short too"}]
    data = make_data(documents, [{"id": "q", "text": "?", "evidence": [{"doc": "b"}]}])
    (finding,) = suitability(experiment(data, 5, 10), tmp_path / "store")
    assert finding.code == "same-chunks"
    assert finding.what == "all 2 chunkings cut 2 of 3 documents alike; they differ on the others only"
    assert list(suitability(experiment(data, 5), tmp_path / "store")) == []


@dataclass(frozen=True)
class Beginning(Chunker):
    """The first characters of a document, in two overlapping chunks."""

    size: int = 10

    def split(self, doc: Document) -> Spans:
        return [(0, self.size), (2, self.size)]


def test_an_own_chunker_that_leaves_most_of_the_text_out(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """A warning says how much its chunks contain, overlaps counted once: 2 x 10 of 20 + 60 characters."""
    documents = [{"id": "a", "text": "one two three four f"}, {"id": "b", "text": "five six seven eight" * 3}]
    data = make_data(documents, [{"id": "q", "text": "one", "evidence": [{"doc": "a"}]}])
    trial = Trial(str(data), Beginning(), BM25(), tokenizer="words", metrics=("recall@3",))
    (found,) = run(Experiment("short", trial, []), store=tmp_path / "store", log=False).results
    assert found.warnings == ["the chunks contain 25% of the text; the rest can never be retrieved"]
    longer = replace(trial, chunker=Beginning(60))
    with pytest.raises(ConfigError, match="'a' has 20 characters, but the chunker returned the span 0-60"):
        run(Experiment("long", longer, []), store=tmp_path / "store", log=False)


def test_ignored_documents_are_never_retrieved(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """With every retriever, the query still gets as many other documents."""
    from harness.components.embedders import Hashing
    from harness.components.retrievers import Dense, Hybrid
    from harness.components.selectors import TopK

    documents = [{"id": name, "text": f"salt and pepper and {name} {TEXT}"} for name in "abcd"]
    queries = [
        {"id": "a", "text": documents[0]["text"], "ignore": ["a"], "evidence": [{"doc": "b"}]},
        {"id": "x", "text": documents[0]["text"], "evidence": [{"doc": "a"}]},
    ]
    data = make_data(documents, queries)
    for retriever in (BM25(depth=3), Dense(depth=3), Hybrid(depth=3)):
        trial = Trial(
            str(data), Fixed(size=20), retriever, embedder=Hashing(), selector=(TopK(k=3),), tokenizer="words",
            metrics=("recall@3",),
        )  # fmt: skip
        launch = run(Experiment("ignores", trial, []), store=tmp_path / "store", log=False)
        session = launch.session
        assert session is not None
        first, second = session.outputs(session.trials[0]).selections
        assert len(first.kept) == len(second.kept) == 3
        assert "a" not in {pick.doc for pick in first.kept}
        assert "a" in {pick.doc for pick in second.kept}


def test_an_unknown_ignored_document_is_an_error(make_data: Callable[..., Path]) -> None:
    """An id that is not in the corpus would ignore nothing."""
    import pytest

    from harness.core.errors import DataError
    from harness.data.dataset import load_dataset

    root = make_data([{"id": "a", "text": "x"}], [{"id": "q", "text": "?", "ignore": ["zz"]}])
    with pytest.raises(DataError, match="ignore: no document 'zz' in the corpus"):
        load_dataset(root, "validation")
    assert json.loads((root / "queries/validation.jsonl").read_text())["ignore"] == ["zz"]
