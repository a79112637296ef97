"""Findings of `harness data check`."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.dataset import check_dataset, import_dataset

TEXT = "Stir twice. Rest ten minutes. Stir twice."


def evidence(start: int, end: int, **more: Any) -> dict[str, Any]:
    return {"doc": "a", "start": start, "end": end, **more}


def findings(make_data: Callable[..., Path], *items: dict[str, Any], documents: Any = None) -> list[tuple[str, str]]:
    asked = [{"id": f"q{n}", "text": f"Question {n}?", "evidence": [item]} for n, item in enumerate(items)]
    root = make_data(documents or [{"id": "a", "text": TEXT}], asked or [{"id": "q", "text": "?"}])
    return [(finding.level, finding.code) for finding in check_dataset(root)]


def test_clean(make_data: Callable[..., Path]) -> None:
    """A unique quote on word edges."""
    assert findings(make_data, evidence(12, 29, quote="Rest ten minutes.")) == []


def test_each_finding(make_data: Callable[..., Path]) -> None:
    """One query each, in order."""
    found = findings(
        make_data,
        evidence(0, 11),
        evidence(11, 29),
        evidence(13, 29),
        evidence(12, 29, quote="Rest two minutes."),
        evidence(12, 999),
        {"doc": "b"},
    )
    assert found == [
        ("warning", "ambiguous"),
        ("warning", "white-space-edge"),
        ("warning", "inside-word"),
        ("error", "bad-evidence"),
        ("error", "bad-evidence"),
        ("error", "bad-evidence"),
    ]


def test_documents_and_queries(make_data: Callable[..., Path]) -> None:
    """Duplicate ids, empty texts, NUL, queries asked twice or without evidence."""
    documents = [
        {"id": "a", "text": TEXT},
        {"id": "a", "text": "x"},
        {"id": "b", "text": " "},
        {"id": "c", "text": "\x00"},
    ]
    root = make_data(documents, [{"id": "q", "text": "Why?"}, {"id": "q", "text": " "}, {"id": "r", "text": "why?"}])
    assert Counter(finding.code for finding in check_dataset(root)) == {
        "duplicate-id": 2,
        "empty-document": 1,
        "nul": 1,
        "no-evidence": 3,
        "empty-query": 1,
        "duplicate-query": 1,
    }


def test_a_malformed_line_and_a_changed_file(make_data: Callable[..., Path]) -> None:
    """Both are findings, not the end of the check."""
    root = make_data([{"id": "a", "text": TEXT}], [{"id": "q", "text": "?", "evidence": [evidence(12, 29)]}])
    (root / "corpus.jsonl").write_text("{\n")
    assert [finding.code for finding in check_dataset(root)] == ["not-pinned", "malformed", "bad-evidence"]


def test_the_chroma_corpora_have_exactly_their_known_defects(shared: Callable[[str], Path], tmp_path: Path) -> None:
    """97 references stand more than once, 49 start inside a word, 217 have white space at an edge, none differs."""
    import_dataset("chroma", shared("chroma-chunking"), tmp_path / "chroma", name="chroma")
    found = list(check_dataset(tmp_path / "chroma"))
    assert Counter(finding.code for finding in found) == {"ambiguous": 97, "inside-word": 49, "white-space-edge": 217}
    assert all(finding.level == "warning" for finding in found)


def test_the_shipped_cookbook_is_clean() -> None:
    """No error; the only warnings are the queries that are meant to have no answer."""
    root = Path(__file__).parents[2] / "datasets" / "cookbook"
    found = list(check_dataset(root))
    assert {(finding.level, finding.code) for finding in found} == {("warning", "no-evidence")}


def test_empty_files(make_data: Callable[..., Path]) -> None:
    """A run refuses them, so the check does."""
    root = make_data([{"id": "a", "text": TEXT}], [{"id": "q", "text": "?"}])
    (root / "corpus.jsonl").write_text("\n")
    (root / "queries/validation.jsonl").write_text("")
    assert [finding.code for finding in check_dataset(root) if finding.level == "error"].count("empty-file") == 2
