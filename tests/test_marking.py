"""Adding queries by hand: places, sentences, the dialogue, the line and the set it goes to."""

import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.dataset import load_dataset, read_manifest
from harness.errors import DataError
from harness.finder import Finder, stretches
from harness.marking import add_line, between, places, query_line
from harness.model import Document

HARNESS = str(Path(sys.executable).parent / "harness")
TEXT = "Salt the water.\n\nBoil the  pasta in it. Boil it for nine minutes.\n\nDrain. Boil no more."
DOC = Document("pasta", TEXT, "Pasta")


def test_places() -> None:
    """Exact ones; else those that differ in white space."""
    assert [(mark.start, mark.end) for mark in places([DOC], "Boil")] == [(17, 21), (40, 44), (74, 78)]
    (loose,) = places([DOC], "Boil the pasta in\nit.")
    assert loose.text == "Boil the  pasta in it."
    assert places([DOC], "Sugar") == []


def test_from_a_beginning_to_an_end() -> None:
    """The next end behind each beginning."""
    (mark,) = between([DOC], "Salt … it.")
    assert mark.text == "Salt the water.\n\nBoil the  pasta in it."
    assert between([DOC], "Drain ... Salt") == []


def test_stretches_cover_the_words() -> None:
    """Paragraphs packed; longer ones cut; nothing but white space is left out."""
    for length in (8, 20, 60, 999):
        parts = list(stretches(DOC, length))
        assert all(len(part.text) <= length and part.text == part.text.strip() for part in parts)
        assert "".join("".join(part.text.split()) for part in parts) == "".join(TEXT.split())
        assert all(a.end <= b.start for a, b in itertools.pairwise(parts))


def test_search() -> None:
    """The stretch with the words; titles count; what shares no word is not found."""
    finder = Finder([DOC, Document("bread", "Bake it.", "Rye")])
    assert [part.doc.id for part in finder.search("salty water")] == ["pasta"]
    assert [part.doc.id for part in finder.search("rye")] == ["bread"]
    assert finder.search("saffron") == []


@pytest.fixture
def data(make_data: Callable[..., Path]) -> Path:
    asked = {"id": "validation-001", "text": "?", "evidence": [{"doc": "pasta", "start": 0, "end": 15}]}
    return make_data([{"id": "pasta", "text": TEXT}, {"id": "twin", "text": "Drain. Then rest."}], [asked])


def harness(cwd: Path, *arguments: str, told: str = "", code: int = 0) -> tuple[str, str]:
    done = subprocess.run(
        [HARNESS, "data", "evidence", "tiny", *arguments],
        capture_output=True, text=True, check=False, cwd=cwd, input=told,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def test_a_quote_gives_its_line(data: Path, tmp_path: Path) -> None:
    """Printed with exact offsets; added to a set, whose hash is renewed, so that a run accepts it."""
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
        (["--quote", "x"], "--quote goes with --query"),
        (["--query", "?", "--quote", "Sugar"], "does not stand in any document"),
        (["--query", "?", "--quote", "Sugar", "--doc", "pasta"], "does not stand in document 'pasta'"),
        (["--query", "?", "--quote", "Drain."], "stands in 2 places, in pasta, twin; choose with --doc"),
        (["--query", "?", "--quote", "Boil", "--doc", "pasta"], "stands 3 times in 'pasta'; give more of the text"),
        (["--query", "?", "--quote", "Salt", "--doc", "zz"], "--doc zz: no such document"),
        (["--query", "?", "--quote", "Salt", "--id", "validation-001", "--to", "validation"], "is there already"),
    ],
)
def test_wrong_usage(data: Path, tmp_path: Path, arguments: list[str], what: str) -> None:
    """One line, and nothing written."""
    before = (data / "queries/validation.jsonl").read_bytes()
    _, err = harness(tmp_path, *arguments, code=2)
    assert what in err
    assert (data / "queries/validation.jsonl").read_bytes() == before


def test_the_dialogue(data: Path, tmp_path: Path) -> None:
    """Search, open, mark sentences, mark by a quote and by its ends, take back, answer; end of input ends it."""
    told = 'How long?\n1\n3\n"Salt the water."\nu\n"Boil it … minutes."\nnonsense\n99\na nine minutes\nd\n'
    out, _ = harness(tmp_path, "--to", "validation", told=told)
    added = load_dataset(data, "validation").query_set.queries[-1]
    spans = [TEXT[place.start : place.end] for item in added.evidence for place in item.places[:1]]
    assert added.answer == "nine minutes"
    assert spans == ["Boil it for nine minutes."]
    assert "nothing found" in out
    assert "there are 0 passages" in out


def test_what_changed_behind_the_manifests_back_is_not_accepted(data: Path) -> None:
    """Adding a line must not bless another."""
    manifest = read_manifest(data)
    line: dict[str, Any] = query_line(manifest, "validation", "?", places([DOC], "Salt the water."))
    with (data / "queries/validation.jsonl").open("a") as file:
        file.write("\n")
    with pytest.raises(DataError, match="the manifest pins"):
        add_line(manifest, "validation", line)
