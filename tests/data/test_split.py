"""Splitting a query set: by document, stratified, once, recorded, and without losing a line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from project import harness, one_line

from harness.core.errors import ConfigError, DataError
from harness.core.text_files import Line
from harness.data.manifest import read_manifest
from harness.data.raw_records import RawQuery, query
from harness.data.split import split_queries, write_split

LINE = Line(Path("q"), 1)


def asked(name: str, *docs: str, **metadata: str) -> RawQuery:
    return query(LINE, {"id": name, "text": "?", "evidence": [{"doc": doc} for doc in docs], "metadata": metadata})


def test_half_of_each_stratum() -> None:
    """Eight queries on eight documents, two types: two of each type in the test set."""
    queries = [asked(f"q{at}", f"d{at}", type="a" if at < 4 else "b") for at in range(8)]
    made = split_queries(queries, fraction=0.5)
    assert made.strata == {"a": (2, 2), "b": (2, 2)}
    assert sorted([*made.validation, *made.test]) == [f"q{at}" for at in range(8)]
    assert made == split_queries(queries, fraction=0.5)
    assert made.test != split_queries(queries, fraction=0.5, seed=1).test


@given(
    st.lists(st.tuples(st.sets(st.integers(0, 30), max_size=3), st.sampled_from("ab")), min_size=8, max_size=60),
    st.floats(0.2, 0.6),
)
def test_no_document_is_in_both_sets(drawn: list[tuple[set[int], str]], fraction: float) -> None:
    """Not even through other queries; every query is in exactly one set."""
    queries = [asked(f"q{at}", *map(str, docs), type=kind) for at, (docs, kind) in enumerate(drawn)]
    docs = {one.id: {place.doc for item in one.evidence for place in item.places} for one in queries}
    try:
        made = split_queries(queries, fraction=fraction)
    except DataError:
        return
    assert sorted([*made.validation, *made.test]) == sorted(docs)
    assert not set().union(*(docs[one] for one in made.validation)) & set().union(*(docs[one] for one in made.test))


def test_groups_stay_together() -> None:
    """Queries with the same `group` are connected, too."""
    queries = [asked(f"q{at}", f"d{at}", group=str(at // 3)) for at in range(12)]
    made = split_queries(queries, fraction=0.25)
    assert made.groups == (3, 1)
    assert len({int(name[1:]) // 3 for name in made.test}) == 1


def test_one_document_cannot_be_split() -> None:
    """But its queries can, if asked for."""
    queries = [asked(f"q{at}", "d") for at in range(10)]
    with pytest.raises(DataError, match="1 group by document, the largest of 10 queries, cannot be split at 0.3"):
        split_queries(queries, fraction=0.3)
    assert len(split_queries(queries, fraction=0.3, by="queries").test) == 3


@pytest.fixture
def data(make_data: Callable[..., Path]) -> Path:
    documents = [{"id": f"d{at}", "text": f"Text {at}."} for at in range(10)]
    queries: list[dict[str, Any]] = [
        {"id": f"q{at}", "text": f"What is {at}?", "evidence": [{"doc": f"d{at}"}]} for at in range(10)
    ]
    return make_data(documents, queries)


def test_the_command(data: Path, tmp_path: Path) -> None:
    """Lines stay as they were; the manifest records the split; a second one is refused; the test set is locked."""
    before = (data / "queries/validation.jsonl").read_bytes().splitlines()
    out = harness(tmp_path, "data", "split", "tiny", "--test", "0.3").stdout
    assert "validation: 7 queries in 7 groups by document\ntest: 3 queries in 3 groups by document, locked" in out
    assert "note: on 'test' no difference can be shown: at least 6 groups are needed; add queries" in out
    assert "on 'validation'" not in out
    manifest = read_manifest(data)
    after = [line for name in ("validation", "test") for line in manifest.queries[name].path.read_bytes().splitlines()]
    assert sorted(after) == sorted(before)
    assert manifest.queries["test"].locked
    assert manifest.split["from"] == "validation"
    assert (manifest.split["test"], manifest.split["by"], manifest.split["seed"]) == (0.3, "documents", 0)
    one_line(harness(tmp_path, "data", "split", "tiny", code=None), "has a locked set 'test' already", "only once")
    assert "0 errors" in harness(tmp_path, "data", "check", "tiny").stdout


def test_a_set_too_small_for_any_verdict(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """Refused if there are enough groups for both sets, as a split cannot be undone; six and seven are enough."""
    documents = [{"id": f"d{at}", "text": f"Text {at}."} for at in range(13)]
    queries = [{"id": f"q{at}", "text": f"What is {at}?", "evidence": [{"doc": f"d{at}"}]} for at in range(13)]
    data = make_data(documents, queries)
    line = "'test' would have 4 groups by document of 13, and on fewer than 6 no difference can be shown"
    one_line(harness(tmp_path, "data", "split", "tiny", code=None), line, "--test 0.5")
    assert list(read_manifest(data).queries) == ["validation"]
    assert "note" not in harness(tmp_path, "data", "split", "tiny", "--test", "0.5").stdout


def test_a_set_of_another_name(data: Path) -> None:
    """It becomes the two sets; its own file is gone, as it would open the locked queries."""
    manifest = data / "manifest.yaml"
    (data / "queries/validation.jsonl").rename(data / "queries/all.jsonl")
    manifest.write_text("name: x\ncorpus: {file: corpus.jsonl}\nqueries: {all: {file: queries/all.jsonl}}\n")
    write_split(read_manifest(data), "all", fraction=0.5)
    assert list(read_manifest(data).queries) == ["validation", "test"]
    assert sorted(path.name for path in (data / "queries").iterdir()) == ["test.jsonl", "validation.jsonl"]


def test_nothing_changes_if_it_fails(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk, a set that is in the way, a changed file."""
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}

    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("harness.data.split.write_manifest", full)
    with pytest.raises(DataError, match="cannot be written: No space left"):
        write_split(read_manifest(data), "validation", fraction=0.3)
    assert {path: path.read_bytes() for path in data.rglob("*") if path.is_file()} == before
    monkeypatch.undo()
    (data / "queries/test.jsonl").write_text(json.dumps({"id": "x", "text": "?"}) + "\n")
    with pytest.raises(ConfigError, match="has a set 'test' already"):
        write_split(read_manifest(data), "validation", fraction=0.3)
    (data / "queries/test.jsonl").unlink()
    (data / "corpus.jsonl").write_text('{"id": "d", "text": "x"}\n')
    with pytest.raises(DataError, match="sha256 is"):
        write_split(read_manifest(data), "validation", fraction=0.3)
