"""Reading data sets: what is accepted, and the one-line errors for everything else."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evidence_text import text_of

from harness.core.errors import DataError
from harness.core.records import Span
from harness.data.checks import check_dataset
from harness.data.dataset import StoredAt, hashed, load_dataset
from harness.data.manifest import read_manifest, sha256_of, write_manifest
from harness.storage.store import Store

DOC = {"id": "a", "text": "Salt the water until it tastes of the sea. Boil."}
QUOTE = "Salt the water until it tastes of the sea."


def query(**evidence: Any) -> dict[str, Any]:
    return {
        "id": "q",
        "text": "How salty?",
        "evidence": [{"doc": "a", "start": 0, "end": 42, "quote": QUOTE, **evidence}],
    }


def test_a_valid_data_set(make_data: Callable[..., Path]) -> None:
    """Its documents, evidence and cluster."""
    data = load_dataset(make_data([DOC], [query()]), "validation")
    (found,) = data.query_set.queries
    assert text_of(data, found.evidence[0].places[0]) == QUOTE
    assert found.cluster == "a"


def test_copies_elsewhere_are_equivalent_places(make_data: Callable[..., Path]) -> None:
    """Whole-word copies in any document count, unless copies are ignored."""
    near_duplicate = {"id": "b", "text": f"Once more: {QUOTE}"}
    inside = {"id": "c", "text": f"x{QUOTE[:-1]}y"}
    root = make_data([DOC, near_duplicate, inside], [query()])
    credited = load_dataset(root, "validation").query_set.queries[0].evidence[0]
    assert credited.places == (Span("a", 0, 42), Span("b", 11, 53))
    ignored = load_dataset(root, "validation", copies="ignore").query_set.queries[0].evidence[0]
    assert ignored.places == (Span("a", 0, 42),)


def test_short_quotes_have_no_copies(make_data: Callable[..., Path]) -> None:
    """'Boil.' in another recipe is not evidence."""
    asked = {"id": "q", "text": "Then?", "evidence": [{"doc": "a", "start": 43, "end": 48, "quote": "Boil."}]}
    data = load_dataset(make_data([DOC, {"id": "b", "text": "Boil."}], [asked]), "validation")
    assert len(data.query_set.queries[0].evidence[0].places) == 1


def test_places_written_as_equivalent(make_data: Callable[..., Path]) -> None:
    """Are listed by `also`."""
    root = make_data([DOC], [query(also=[{"doc": "a", "start": 43, "end": 48}])])
    assert load_dataset(root, "validation").query_set.queries[0].evidence[0].places[1] == Span("a", 43, 48)


def test_document_evidence_with_grades(make_data: Callable[..., Path]) -> None:
    """Evidence with only `doc`; the grade of the query is the default."""
    asked = {"id": "q", "text": "?", "grade": 2, "evidence": [{"doc": "a"}, {"doc": "b", "grade": 3}]}
    (found,) = load_dataset(make_data([DOC, {**DOC, "id": "b"}], [asked]), "validation").query_set.queries
    assert [item.grade for item in found.evidence] == [2, 3]
    assert found.by_document


def test_copies_of_a_document_are_equivalent(make_data: Callable[..., Path]) -> None:
    """Documents with the same text, ignoring white space around it.

    A copy that the query lists itself keeps its role, and the manifest or the experiment may ignore copies.
    """
    copies = [{**DOC, "id": "b", "text": f"{DOC['text']}\n"}, {**DOC, "id": "c"}, {"id": "d", "text": "Another one."}]
    asked = {"id": "q", "text": "?", "evidence": [{"doc": "a"}], "irrelevant": ["c"]}
    root = make_data([DOC, *copies], [asked])

    def places(**options: Any) -> list[str]:
        (item,) = load_dataset(root, "validation", **options).query_set.queries[0].evidence
        return [place.doc for place in item.places]

    assert places() == ["a", "b"]
    assert places(copies="ignore") == ["a"]
    write_manifest(replace(read_manifest(root), copies="ignore"))
    assert places() == ["a"]
    assert places(copies="credit") == ["a", "b"]
    both = {"id": "q", "text": "?", "evidence": [{"doc": "a"}, {"doc": "b"}]}
    other = load_dataset(make_data([DOC, *copies], [both], name="other"), "validation")
    first, second = other.query_set.queries[0].evidence
    assert ([p.doc for p in first.places], [p.doc for p in second.places]) == (["a", "c"], ["b", "c"])


def test_short_documents_have_no_copies(make_data: Callable[..., Path]) -> None:
    """`See above.` in two documents is not a copy."""
    short = [{"id": name, "text": "See above."} for name in "ab"]
    root = make_data(short, [{"id": "q", "text": "?", "evidence": [{"doc": "a"}]}])
    assert len(load_dataset(root, "validation").query_set.queries[0].evidence[0].places) == 1


@pytest.mark.parametrize(
    ("documents", "queries", "where", "what"),
    [
        ([DOC, DOC], [query()], "corpus.jsonl:2", "id 'a' already occurs in line 1"),
        ([{"id": "a"}], [query()], "corpus.jsonl:1", "text: is missing"),
        ([{**DOC, "txt": ""}], [query()], "corpus.jsonl:1", "unknown key 'txt'"),
        ([{**DOC, "id": " "}], [query()], "corpus.jsonl:1", "id: is empty"),
        ([{**DOC, "text": 5}], [query()], "corpus.jsonl:1", "text: expected text, not 5"),
        ([DOC], [query(doc="b")], "validation.jsonl:1", "no document 'b' in the corpus"),
        ([DOC], [query(end=4200)], "validation.jsonl:1", "not inside 'a', which has 48 characters"),
        ([DOC], [query(start=9, end=9)], "validation.jsonl:1", "span 9-9"),
        ([DOC], [query(start=True)], "validation.jsonl:1", "whole numbers"),
        ([DOC], [query(start=1, end=43)], "validation.jsonl:1", "it occurs 1 characters earlier, at 0-42"),
        ([DOC], [query(quote="Sugar the water until it tastes of the sea")], "validation.jsonl:1", "does not occur"),
        ([DOC], [{**query(), "irrelevant": "a"}], "validation.jsonl:1", "irrelevant: expected a list of document ids"),
        (
            [DOC],
            [{"id": "q", "text": "?", "evidence": [{"doc": "a"}], "unjudged": ["a"]}],
            "validation.jsonl:1",
            "unjudged: 'a' is also evidence; keep only one of the two",
        ),
        ([DOC], [query(grade=0)], "validation.jsonl:1", "grade: expected a number above 0"),
        ([DOC], [query(), query()], "validation.jsonl:2", "id 'q' already"),
        ([DOC], [{**query(), "evidence": {}}], "validation.jsonl:1", "evidence: expected a list"),
        ([DOC], [query(grade=10**400)], "validation.jsonl:1", "grade: expected a number above 0"),
        ([DOC], [query(start=None, end=None)], "validation.jsonl:1", "a quote without start and end"),
        ([DOC], [{**query(), "evidence": [{"doc": "a"}, {"doc": "a"}]}], "validation.jsonl:1", "repeats evidence[0]"),
        ([DOC], [{**query(), "evidence": query()["evidence"] * 2}], "validation.jsonl:1", "repeats evidence[0]"),
        (
            [DOC],
            [{**query(), "evidence": [{"doc": "a"}, query()["evidence"][0]]}],
            "validation.jsonl:1",
            "spans and whole documents in one query",
        ),
    ],
)
def test_errors_name_file_and_line(
    make_data: Callable[..., Path], documents: list[Any], queries: list[Any], where: str, what: str
) -> None:
    """One line each."""
    with pytest.raises(DataError) as caught:
        load_dataset(make_data(documents, queries), "validation")
    assert where in str(caught.value)
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b'{"id": "a", "text": "x"', "not valid JSON"),
        (b'{"id": "a", "text": "\xff"}', "not UTF-8"),
        (b'["a"]', "expected a JSON object"),
        (b'{"id": "a", "text": "x\\ud800"}', "half a surrogate pair, U+D800, at character 1"),
        (b'{"id": "a", "text": "x", "metadata": {"n": NaN}}', "NaN is not JSON"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_malformed_lines(make_data: Callable[..., Path], line: bytes, what: str) -> None:
    """Invalid JSON, wrong encodings, halves of surrogate pairs."""
    root = make_data([DOC], [query()])
    (root / "corpus.jsonl").write_bytes(line + b"\n")
    write_manifest(read_manifest(root))
    with pytest.raises(DataError, match="corpus.jsonl:1: ") as caught:
        load_dataset(root, "validation")
    assert what in str(caught.value)


def test_byte_order_mark_crlf_and_blank_lines_are_accepted(make_data: Callable[..., Path]) -> None:
    """As other systems write them."""
    root = make_data([DOC], [query()])
    (root / "corpus.jsonl").write_bytes(b"\xef\xbb\xbf" + json.dumps(DOC).encode() + b"\r\n\r\n")
    write_manifest(read_manifest(root))
    assert len(load_dataset(root, "validation").documents) == 1


def test_a_changed_file_is_refused(make_data: Callable[..., Path]) -> None:
    """The message says how to accept the change."""
    root = make_data([DOC], [query()])
    (root / "corpus.jsonl").write_text(json.dumps({**DOC, "title": "new"}))
    with pytest.raises(DataError, match="harness data pin"):
        load_dataset(root, "validation")


def test_a_locked_set_needs_final(make_data: Callable[..., Path]) -> None:
    """It is only opened for the final score."""
    root = make_data([DOC], [query()], [query()])
    with pytest.raises(DataError, match="--final"):
        load_dataset(root, "test")
    assert load_dataset(root, "test", final=True).query_set.answerable == 1


def test_an_unknown_set(make_data: Callable[..., Path]) -> None:
    """The message suggests a known one."""
    with pytest.raises(DataError, match="Did you mean 'validation'"):
        load_dataset(make_data([DOC], [query()]), "validaton")


def test_a_manifest_without_hashes_can_be_read_and_pinned(make_data: Callable[..., Path]) -> None:
    """A manifest written by hand names only files; their hashes are computed, and `data pin` adds them."""
    root = make_data([DOC], [query()])
    manifest = root / "manifest.yaml"
    manifest.write_text(
        "name: x\ncorpus: {file: corpus.jsonl}\nqueries: {validation: {file: queries/validation.jsonl}}\n"
    )
    assert len(load_dataset(root, "validation").documents) == 1
    found = hashed(read_manifest(root))
    assert next(finding.code for finding in check_dataset(root)) == "unpinned"
    write_manifest(read_manifest(root))
    assert read_manifest(root).corpus.sha256 == found.corpus.sha256 == sha256_of(root / "corpus.jsonl")
    assert read_manifest(root).queries == found.queries


def test_an_unpinned_file_that_changes_during_a_run(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """What was stored under its first hash must not come from the changed file."""
    root = make_data([DOC], [query()])
    (root / "manifest.yaml").write_text(
        "name: x\ncorpus: {file: corpus.jsonl}\nqueries: {validation: {file: queries/validation.jsonl}}\n"
    )
    before = hashed(read_manifest(root))
    hashes = before.corpus.sha256, before.queries["validation"].sha256
    at = StoredAt(Store(tmp_path / "s"), *hashes)
    assert len(load_dataset(root, "validation", at=at).documents) == 1
    with (root / "corpus.jsonl").open("a") as file:
        file.write('{"id": "late", "text": "x"}\n')
    assert len(load_dataset(root, "validation", at=at).documents) == 1
    with pytest.raises(DataError, match="sha256 is"):
        load_dataset(root, "validation", at=StoredAt(Store(tmp_path / "t"), *hashes))


@pytest.mark.parametrize(
    ("manifest", "what"),
    [
        ("corpus: {file: a}\nqueries: {on: {file: b}, on: {file: c}}\n", "key 'on' is written twice"),
        ("corpus: {file: a}\nqueries: {1: {file: b}}\n", "the name 1 of a set or run is not text"),
        ("[" * 5000, "not valid YAML"),
        ("corpus: {file: a}\nqueries: {v: {file: b, synthetic: 1}}\n", "queries.v.synthetic: expected true or false"),
        ("corpus: {file: a}\nqueries: {v: {file: b}}\nruns: []\n", "runs: expected a mapping"),
        ("corpus: {file: a}\nqueries: {v: {file: b}}\nruns: 5\n", "runs: expected a mapping"),
    ],
)
def test_errors_of_a_manifest(tmp_path: Path, manifest: str, what: str) -> None:
    """One line each, also for repeated keys; a set may be named `on`."""
    (tmp_path / "manifest.yaml").write_text(manifest)
    with pytest.raises(DataError) as caught:
        read_manifest(tmp_path)
    assert what in str(caught.value)
    (tmp_path / "manifest.yaml").write_text("corpus: {file: a}\nqueries: {on: {file: b}}\n")
    assert list(read_manifest(tmp_path).queries) == ["on"]


ODD = (
    "on",
    "1",
    "1e3",
    "1e-3",
    "+.5",
    "null",
    "2026-01-31",
    "0x1f",
    "1_000",
    "12:30",
    "yes",
    "=",
    "a: b",
    "'q'",
    "é #x",
)


def test_a_manifest_survives_a_round_trip(make_data: Callable[..., Path]) -> None:
    """Also with names, licences and sources that YAML could read as other types."""
    root = make_data([DOC], [query()])
    before = read_manifest(root)
    pinned = before.queries["validation"]
    for odd in ODD:
        made = replace(before, name=odd, licence=odd, source=odd, queries={odd: pinned}, runs={odd: pinned})
        write_manifest(made)
        assert read_manifest(root) == made
