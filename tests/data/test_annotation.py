"""Adding queries by hand: places, sentences, the dialogue, the record and its query set."""

import gzip
import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import DataError, HarnessError
from harness.core.records import Document
from harness.data.annotation import add_query, between, only_place, places, query_line
from harness.data.dataset import load_dataset
from harness.data.manifest import PinnedFile, read_manifest, write_manifest
from harness.data.passage_search import PassageSearch, snippets
from harness.data.write import add_record, write_set

HARNESS = str(Path(sys.executable).parent / "harness")
TEXT = "Salt the water.\n\nBoil the  pasta in it. Boil it for nine minutes.\n\nDrain. Boil no more."
DOC = Document("pasta", TEXT, "Pasta")


def test_places() -> None:
    """Exact places; if there are none, those that differ only in white space."""
    assert [(mark.start, mark.end) for mark in places([DOC], "Boil")] == [(17, 21), (40, 44), (74, 78)]
    (loose,) = places([DOC], "Boil the pasta in\nit.")
    assert loose.text == "Boil the  pasta in it."
    assert places([DOC], "Sugar") == []


def test_from_a_beginning_to_an_end() -> None:
    """The next end after each beginning."""
    (mark,) = between([DOC], "Salt … it.")
    assert mark.text == "Salt the water.\n\nBoil the  pasta in it."
    assert between([DOC], "Drain ... Salt") == []


def test_snippets_cover_the_words() -> None:
    """Paragraphs are packed, longer ones cut, and only white space is left out."""
    for length in (8, 20, 60, 999):
        parts = list(snippets(DOC, length))
        assert all(len(part.text) <= length and part.text == part.text.strip() for part in parts)
        assert "".join("".join(part.text.split()) for part in parts) == "".join(TEXT.split())
        assert all(a.end <= b.start for a, b in itertools.pairwise(parts))


def test_search() -> None:
    """Finds the passage with the words; titles count; passages without a shared word are not found."""
    passage_search = PassageSearch([DOC, Document("bread", "Bake it.", "Rye")])
    assert [hit.chunk.doc for hit in passage_search.search("salty water")] == ["pasta"]
    assert [hit.chunk.doc for hit in passage_search.search("rye")] == ["bread"]
    assert passage_search.search("saffron") == []


@pytest.fixture
def data(make_data: Callable[..., Path]) -> Path:
    asked = {"id": "validation-001", "text": "?", "evidence": [{"doc": "pasta", "start": 0, "end": 15}]}
    return make_data([{"id": "pasta", "text": TEXT}, {"id": "copy", "text": "Drain. Then rest."}], [asked])


def harness(cwd: Path, *arguments: str, expected: str = "", code: int = 0) -> tuple[str, str]:
    done = subprocess.run(
        [HARNESS, "data", "evidence", "tiny", *arguments],
        capture_output=True, text=True, check=False, cwd=cwd, input=expected,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def test_a_quote_becomes_a_record(data: Path, tmp_path: Path) -> None:
    """Printed with exact offsets; added to a set, whose hash is updated so that a run accepts it."""
    out, _ = harness(tmp_path, "--query", "How?", "--quote", "Boil the pasta in it.", "--answer", "in water")
    line = json.loads(out)
    assert line == {
        "id": "q-001",
        "text": "How?",
        "answer": "in water",
        "evidence": [{"doc": "pasta", "start": 17, "end": 39, "quote": "Boil the  pasta in it."}],
    }
    out, _ = harness(tmp_path, "--query", "How?", "--quote", "Salt the water.", "--to", "validation")
    assert json.loads(out)["id"] == "validation-002"
    added = load_dataset(data, "validation").query_set.queries[-1]
    assert (added.id, added.text) == ("validation-002", "How?")
    harness(tmp_path, "--query", "New?", "--quote", "Salt the water.", "--to", "mine", "--id", "x")
    assert [query.id for query in load_dataset(data, "mine").query_set.queries] == ["x"]
    _, err = harness(tmp_path, "--query", "How?", "--quote", "oil the  pasta", "--id", "y")
    assert "begins inside a word" in err


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--quote", "x"], "--quote needs --query"),
        (["--query", "?", "--quote", "Sugar"], "does not occur in any document"),
        (["--query", "?", "--quote", "Sugar", "--doc", "pasta"], "does not occur in document 'pasta'"),
        (["--query", "?", "--quote", "Drain."], "occurs in 2 places, in pasta, copy; choose with --doc"),
        (["--query", "?", "--quote", "Boil", "--doc", "pasta"], "occurs 3 times in 'pasta', at 17, 40, 74; quote more"),
        (["--query", "?", "--quote", "Salt the", "--to", "../x"], "'../x': expected a name of letters"),
        (["--query", "?", "--quote", "Salt", "--doc", "zz"], "--doc zz: no such document"),
        (["--query", "?", "--quote", "Salt", "--id", "validation-001", "--to", "validation"], "already exists"),
    ],
)
def test_wrong_usage(data: Path, tmp_path: Path, arguments: list[str], what: str) -> None:
    """One line of error, and nothing is written."""
    before = (data / "queries/validation.jsonl").read_bytes()
    _, err = harness(tmp_path, *arguments, code=2)
    assert what in err
    assert (data / "queries/validation.jsonl").read_bytes() == before


def test_the_dialogue(data: Path, tmp_path: Path) -> None:
    """Search, open, mark sentences, quotes and quotes by their ends, undo, answer; stops at the end of input."""
    message = (
        'How long?\n1\n3\n"Salt the water."\nu\n"Boil it … minutes."\n2024-01-15\n²\nnonsense\n99\na nine minutes\nd\n'
    )
    out, _ = harness(tmp_path, "--to", "validation", expected=message)
    added = load_dataset(data, "validation").query_set.queries[-1]
    spans = [TEXT[place.start : place.end] for item in added.evidence for place in item.places[:1]]
    assert added.answer == "nine minutes"
    assert spans == ["Boil it for nine minutes."]
    assert "nothing found" in out
    assert "the search found 0 passages" in out


def test_q_ends_the_dialogue(data: Path, tmp_path: Path) -> None:
    """Also where a query is asked for; it is no query."""
    out, _ = harness(tmp_path, "--to", "validation", expected="q\n")
    assert out.count("query> ") == 1
    assert len(load_dataset(data, "validation").query_set.queries) == 1


def test_a_quote_by_its_ends(data: Path, tmp_path: Path) -> None:
    """As in the dialogue."""
    out, _ = harness(tmp_path, "--query", "How?", "--quote", "Boil it … minutes.")
    assert json.loads(out)["evidence"][0]["quote"] == "Boil it for nine minutes."


def test_what_a_quote_names(make_data: Callable[..., Path]) -> None:
    """Three dots are as good as one sign; a document by the end of its id is suggested; copies are told apart."""
    texts = {"guide/a.md": "Salt the water. Boil it.", "b.md": "Salt the  water.", "c.md": "Salt the  water. Drain."}
    documents = [Document(name, text) for name, text in texts.items()]
    assert only_place(documents, "Salt ... it.").text == "Salt the water. Boil it."
    with pytest.raises(DataError, match=r"--doc a.md: no such document. Did you mean 'guide/a.md'\?"):
        only_place(documents, "Salt", "a.md")
    with pytest.raises(DataError, match=r"in b.md, c.md; choose with --doc \(copies are credited alike\)"):
        only_place(documents, "Salt the  water.")
    with pytest.raises(DataError, match=r"they differ in white space, so only that one is credited"):
        only_place(documents, "Salt the\nwater.")


def test_a_set_without_a_line_is_a_new_set(data: Path, tmp_path: Path) -> None:
    """Its queries may have been deleted by hand; nothing that is marked gets lost."""
    manifest = read_manifest(data)
    manifest.queries["validation"].path.write_text("")
    write_manifest(manifest)
    name = add_query(data, "What is drained?", ["Drain."], doc="pasta")
    assert [query.id for query in load_dataset(data, "validation").query_set.queries] == [name]


def test_a_failed_search_keeps_the_open_passage(data: Path, tmp_path: Path) -> None:
    """Its sentences can still be marked; `?` shows the help again."""
    out, _ = harness(tmp_path, "--to", "validation", expected="boil\n1\nzzz\n?\n2\nd\n")
    assert "nothing found; the passage above is still open" in out
    assert out.count("`?` shows this help") == 2
    assert [item.places[0] for item in load_dataset(data, "validation").query_set.queries[-1].evidence]


def test_adding_a_record_does_not_accept_other_changes(data: Path) -> None:
    """A query file that was changed since it was pinned."""
    manifest = read_manifest(data)
    line: dict[str, Any] = query_line(manifest, "validation", "?", places([DOC], "Salt the water."))
    with (data / "queries/validation.jsonl").open("a") as file:
        file.write("\n")
    with pytest.raises(DataError, match="the manifest pins"):
        add_record(manifest, "validation", line)


def test_marks_are_not_lost_silently(data: Path, tmp_path: Path) -> None:
    """A message at the end of the input and at `q`; a query without evidence needs `d` twice."""
    _, err = harness(tmp_path, "--query", "How?", expected='"Salt the water."\nq\n')
    assert "1 marked and not written" in err
    out, _ = harness(tmp_path, "--query", "How?", expected="d\nd\n")
    assert "nothing is marked" in out
    assert json.loads(out[out.index('{"id"') :])["evidence"] == []


def _pinned(data: Path, **changes: Any) -> None:
    manifest = read_manifest(data)
    write_manifest(replace(manifest, queries={**manifest.queries, **changes}))


def test_sets_that_cannot_be_written(data: Path) -> None:
    """A locked or gzipped set, a file missing from the manifest, a shared file, a generated set, an invalid name."""
    before = (data / "queries/validation.jsonl").read_bytes()
    (data / "queries/stray.jsonl").write_text('{"id": "mine", "text": "?"}\n')
    (data / "queries/zipped.jsonl.gz").write_bytes(gzip.compress(before))
    (data / "queries/made.jsonl").write_text('{"id": "m", "text": "?"}\n')
    _pinned(
        data,
        locked=PinnedFile(data / "queries/validation.jsonl", "", locked=True),
        zipped=PinnedFile(data / "queries/zipped.jsonl.gz", ""),
        made=PinnedFile(data / "queries/made.jsonl", "", synthetic=True),
    )
    manifest, record = read_manifest(data), {"id": "new", "text": "?"}
    for name, what in {
        "locked": "is locked",
        "zipped": "is compressed",
        "stray": "exists but is not in the manifest",
        "validation": "is shared by several query sets",
        "made": "contains generated queries",
        "a/b": "expected a name of letters",
    }.items():
        with pytest.raises(HarnessError, match=what):
            add_record(manifest, name, record)
    assert (data / "queries/validation.jsonl").read_bytes() == before
    assert read_manifest(data) == manifest


def test_writing_a_set_does_not_accept_other_changes(data: Path) -> None:
    """A corpus that was changed since it was pinned."""
    manifest = read_manifest(data)
    with (data / "corpus.jsonl").open("a") as file:
        file.write("\n")
    with pytest.raises(DataError, match="corpus.jsonl: sha256 is"):
        write_set(manifest, "new", [{"id": "q", "text": "?"}])
    assert read_manifest(data) == manifest


def test_a_manifest_that_cannot_be_written(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The query file stays as it was, and a new one is removed."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    manifest, before = read_manifest(data), (data / "queries/validation.jsonl").read_bytes()
    monkeypatch.setattr("harness.data.write.write_manifest", full)
    for name in ("validation", "new"):
        with pytest.raises(DataError, match="cannot be written: No space left"):
            add_record(manifest, name, {"id": "new", "text": "?"})
    assert (data / "queries/validation.jsonl").read_bytes() == before
    assert sorted(path.name for path in (data / "queries").iterdir()) == ["validation.jsonl"]
