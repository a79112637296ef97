"""The public data sets are imported with their published counts and without errors."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from evidence_text import text_of

from harness.data.checks import check_dataset
from harness.data.dataset import load_dataset
from harness.data.importers import Options, import_dataset

QUESTIONS = Options(
    corpus="anthropic_docs.json",
    queries={"": "docs_evaluation_dataset.json"},
    columns={"doc.id": "chunk_link", "evidence.doc": "correct_chunks", "query.answer": "correct_answer"},
)
JUDGED = Options(qrels={"validation": "llmjudge_test_qrel_idx.txt"}, queries={"": "llm4eval_query_2024.txt"})

CASES: dict[str, tuple[str, Options, dict[str, int]]] = {
    "beir-scifact": ("beir", Options(), {"documents": 5183, "test queries": 300, "test judgments": 339}),
    "vaswani": (
        "trec",
        Options(),
        {"documents": 11429, "validation queries": 93, "validation judgments": 2083},
    ),
    "chroma-chunking": ("chroma", Options(), {"documents": 5, "validation queries": 472, "references": 790}),
    "xquad-en": ("squad", Options(), {"articles": 48, "paragraphs": 240, "validation queries": 1190}),
    "contract-nli": (
        "contract-nli",
        Options(),
        {"documents": 61, "pairs with evidence": 614, "pairs without evidence": 423},
    ),
    "hotpotqa-100": (
        "hotpotqa",
        Options(),
        {"documents": 994, "validation queries": 100, "supporting sentences": 229},
    ),
    "anthropic-docs": (
        "jsonl",
        QUESTIONS,
        {"documents": 232, "validation queries": 100, "validation judgments": 192},
    ),
    "wice": ("wice", Options(), {"dev queries": 349, "test queries": 358}),
    "llmjudge": ("trec", JUDGED, {"validation judgments": 4423}),
}


@pytest.mark.parametrize("name", CASES)
def test_counts(name: str, shared: Callable[[str], Path], tmp_path: Path) -> None:
    """The counts are as published, the check finds no error, and every blank span is reported."""
    kind, options, expected = CASES[name]
    target = tmp_path / "data"
    counts = import_dataset(kind, shared(name), target, options=options)
    assert {what: counts.get(what) for what in expected} == expected
    found = list(check_dataset(target))
    assert {finding.code for finding in found if finding.level == "error"} == set()
    blank = sum(finding.code == "blank-evidence" for finding in found)
    for queries in sorted((target / "queries").glob("*.jsonl")):
        data = load_dataset(target, queries.stem, final=True)
        spans = [item.places[0] for query in data.query_set.queries for item in query.evidence if not item.whole]
        assert sum(not text_of(data, span).strip() for span in spans) == blank


def test_scifact_is_locked_and_titled(shared: Callable[[str], Path], tmp_path: Path) -> None:
    """The test set is locked, and a title is the first paragraph."""
    import_dataset("beir", shared("beir-scifact"), tmp_path / "scifact")
    data = load_dataset(tmp_path / "scifact", "test", final=True)
    assert sum(len(query.evidence) for query in data.query_set.queries) == 339
    assert data.documents[0].text.startswith(f"{data.documents[0].title}\n\n")


def test_chroma_questions_by_corpus(shared: Callable[[str], Path], tmp_path: Path) -> None:
    """The published numbers of questions."""
    import_dataset("chroma", shared("chroma-chunking"), tmp_path / "chroma")
    queries = load_dataset(tmp_path / "chroma", "validation").query_set.queries
    found: Mapping[Any, int] = Counter(query.metadata["corpus"] for query in queries)
    assert found == {"wikitexts": 144, "pubmed": 99, "finance": 97, "state_of_the_union": 76, "chatlogs": 56}


def test_squad_by_paragraph(shared: Callable[[str], Path], tmp_path: Path) -> None:
    """240 documents; every answer occurs at its offset, in articles as in paragraphs."""
    import_dataset("squad", shared("xquad-en"), tmp_path / "paragraphs", options=Options(unit="paragraph"))
    import_dataset("squad", shared("xquad-en"), tmp_path / "articles")
    short, long = (load_dataset(tmp_path / name, "validation", copies="ignore") for name in ("paragraphs", "articles"))
    assert (len(short.documents), len(long.documents)) == (240, 48)
    for one, other in zip(short.query_set.queries, long.query_set.queries, strict=True):
        assert one.id == other.id
        texts = [text_of(data, query.evidence[0].places[0]) for data, query in ((short, one), (long, other))]
        assert texts == [one.answer, one.answer]
