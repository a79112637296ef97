"""Findings of `harness data check`, each on a few lines of data shown here."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.data.checks import CODES, Finding, check_dataset
from harness.data.importers import import_dataset
from harness.data.manifest import PinnedFile, read_manifest, write_manifest

TEXT = "Stir twice. Rest ten minutes. Stir twice."
SIZES = {"short-documents", "few-queries", "few-clusters"}
"""Findings on every data set as small as these."""

MakeData = Callable[..., Path]


def evidence(start: int, end: int, **more: Any) -> dict[str, Any]:
    return {"doc": "a", "start": start, "end": end, **more}


def found(root: Path) -> list[Finding]:
    """All findings except those on size."""
    return [finding for finding in check_dataset(root) if finding.code not in SIZES]


def findings(make_data: MakeData, *items: dict[str, Any], documents: Any = None) -> list[Finding]:
    asked = [{"id": f"q{n}", "text": f"Question {WORDS[n]}?", "evidence": [item]} for n, item in enumerate(items)]
    return found(make_data(documents or [{"id": "a", "text": TEXT}], asked or [{"id": "q", "text": "?"}]))


WORDS = ("one", "two", "three", "four", "five", "six", "seven")


def test_clean_evidence(make_data: MakeData) -> None:
    """A unique quote with whole words has no finding."""
    assert findings(make_data, evidence(12, 29, quote="Rest ten minutes.")) == []


def test_usable_but_doubtful_spans(make_data: MakeData) -> None:
    """One query each, in the order of the findings."""
    listed = findings(
        make_data, evidence(0, 11), evidence(11, 29), evidence(13, 28), evidence(11, 12), evidence(29, 30, quote=" ")
    )
    assert [(finding.level, finding.code) for finding in listed] == [
        ("warning", "ambiguous"),
        ("warning", "white-space-edge"),
        ("warning", "inside-word"),
        ("warning", "blank-evidence"),
        ("warning", "blank-evidence"),
    ]
    assert listed[2].what.endswith("begins inside a word: …tir twice. R|est ten minu…")


@pytest.mark.parametrize(
    ("place", "code", "what"),
    [
        (evidence(12, 29, quote="Rest two minutes."), "quote-differs", "the quote does not occur in the document"),
        (evidence(12, 999), "out-of-range", "span 12-999 is not inside 'a', which has 41 characters"),
        (evidence(90, 99, quote="Rest"), "out-of-range", "it occurs 78 characters earlier, at 12-16"),
        (evidence(15, 32, quote="Rest ten minutes."), "shifted", "it occurs 3 characters earlier, at 12-29"),
        (evidence(12, 20, quote="Rest ten minutes."), "shifted", "the quote begins there and ends at 29"),
        (
            evidence(28, 39, quote="Stir twice."),
            "shifted",
            "it occurs 2 characters later, at 30-41, and at 1 other places",
        ),
        (evidence(12, 29, quote="Rest  ten\nminutes. "), "quote-differs", "ignoring white space, it occurs at 12-29"),
        ({"doc": "b"}, "unknown-document", "no document 'b' in the corpus"),
        ({"doc": "b", "absent": True}, "absent-document", "'b' is not in the corpus"),
        ({"doc": "a", "absent": True}, "not-absent", "'a' is marked absent but is in the corpus"),
    ],
)
def test_faulty_places(make_data: MakeData, place: dict[str, Any], code: str, what: str) -> None:
    """The finding says what is wrong, and where the quote occurs instead."""
    (finding,) = findings(make_data, place)
    assert finding.code == code
    assert what in finding.what
    assert finding.where.endswith("validation.jsonl:1")


@pytest.mark.parametrize(
    ("text", "count", "why"),
    [
        ("Crème brûlée à la crème. Cook it. Cook it.", lambda t: len(t.encode()), "in UTF-8 bytes"),
        ("🧂🧂🧂 Cook it. And then: Cook it.", lambda t: len(t.encode("utf-16-le")) // 2, "in UTF-16 units"),
        ("a\nb\nc\nCook it. Cook it.", lambda t: len(t) + t.count("\n"), "a line end counts as two"),
        ("a\r\nb\r\nc\r\nCook it. Cook it.", lambda t: len(t) - t.count("\r\n"), "if \\r\\n counts as one"),
    ],
)
def test_offsets_in_other_units(make_data: MakeData, text: str, count: Callable[[str], int], why: str) -> None:
    """The finding names the cause of the shift, which decides between several places."""
    right = text.index("Cook it.")
    start = count(text[:right])
    (finding,) = findings(
        make_data, evidence(start, start + 8, quote="Cook it."), documents=[{"id": "a", "text": text}]
    )
    assert finding.code == "shifted"
    assert why in finding.what
    assert f"at {right}-{right + 8}" in finding.what
    assert "other places" not in finding.what


def test_overlapping_items(make_data: MakeData) -> None:
    """Two items that overlap count the shared text twice; equivalent places of one item may overlap."""
    asked = {"id": "q", "text": "?", "evidence": [evidence(12, 29), evidence(17, 20), evidence(0, 4)]}
    (finding,) = found(make_data([{"id": "a", "text": TEXT.replace("Stir twice.", "", 1).rjust(41)}], [asked]))[-1:]
    assert (finding.code, finding.what) == ("overlapping-evidence", "query 'q': 'a' 12-29 and 17-20 share 3 characters")


def test_documents_and_queries(make_data: MakeData) -> None:
    """Duplicate ids, empty texts, NUL, queries asked twice or without evidence."""
    documents = [
        {"id": "a", "text": TEXT},
        {"id": "a", "text": "x"},
        {"id": "b", "text": " "},
        {"id": "c", "text": "\x00"},
    ]
    root = make_data(documents, [{"id": "q", "text": "Why?"}, {"id": "q", "text": " "}, {"id": "r", "text": "why"}])
    assert Counter(finding.code for finding in found(root)) == {
        "duplicate-id": 2,
        "empty-document": 1,
        "nul": 1,
        "no-evidence": 2,
        "duplicate-query": 1,
    }


LONG = " ".join(f"Step {n} takes {n * n} minutes and a spoon of spice number {n + 3}." for n in range(20))


def test_near_duplicates(make_data: MakeData) -> None:
    """Documents with the same or nearly the same text; queries in nearly the same words, unless a number differs."""
    documents = [
        {"id": "a", "text": LONG},
        {"id": "b", "text": LONG.replace(" ", "  ")},
        {"id": "c", "text": f"{LONG} And enjoy."},
        {"id": "d", "text": LONG[::-1]},
    ]
    asked = [
        {"id": "q", "text": "How long does the seventh step of it take?", "evidence": [{"doc": "a"}]},
        {
            "id": "r",
            "text": "How long does the seventh step of it take today?",
            "evidence": [{"doc": "a"}, {"doc": "d"}],
        },
        {"id": "e", "text": "How long does the seventh step of it take, then?", "evidence": [{"doc": "c"}]},
        {"id": "s", "text": "How long does step 7 of it take?", "evidence": [{"doc": "a"}]},
        {"id": "t", "text": "How long does step 8 of it take?", "evidence": [{"doc": "a"}]},
    ]
    lines = [(finding.code, finding.what) for finding in found(make_data(documents, asked))]
    assert lines == [
        ("duplicate-document", "document 'b' has the same text as 'a' in line 1"),
        ("near-duplicate-document", "document 'c' shares 99% of its word sequences with 'a' in line 1"),
        ("near-duplicate-query", "query 'r' shares 89% of its words with 'q' in line 1, and has other evidence"),
    ]


def test_queries_of_two_sets(make_data: MakeData) -> None:
    """A query in two sets, and a query that ignores its own evidence."""
    asked = {"id": "q", "text": "How long to rest?", "evidence": [evidence(12, 29)], "ignore": ["a"]}
    locked = {"id": "t", "text": "how long to REST", "evidence": [evidence(12, 29)]}
    lines = [
        (finding.code, finding.what) for finding in found(make_data([{"id": "a", "text": TEXT}], [asked], [locked]))
    ]
    assert lines == [
        ("ignored-evidence", "query 'q': its evidence is in 'a', which it ignores"),
        ("query-in-two-sets", "query 't' asks the same as 'q' in line 1 of validation.jsonl"),
    ]


def test_texts_without_spaces_and_in_other_unicode_forms(make_data: MakeData) -> None:
    """Chinese is compared by character; composed and decomposed letters are equal."""
    long = "".join(chr(0x4E00 + n) for n in range(200))
    documents = [
        {"id": "a", "text": long},
        {"id": "b", "text": f"{long[:100]}塩{long[101:]}"},
        {"id": "c", "text": "Cafe\u0301."},
    ]
    asked = [
        {"id": "q", "text": long[20:40], "evidence": [{"doc": "a"}]},
        {"id": "r", "text": "Café noir, s'il vous plaît?", "evidence": [{"doc": "c"}]},
        {"id": "s", "text": "Cafe\u0301 noir, s'il vous plai\u0302t?", "evidence": [{"doc": "c"}]},
    ]
    codes = [finding.code for finding in found(make_data(documents, asked))]
    assert codes == ["near-duplicate-document", "leaking-query", "duplicate-query"]


def test_a_run_that_cannot_be_read(make_data: MakeData) -> None:
    """A malformed run file is found before a trial replays it."""
    root = make_data([{"id": "a", "text": TEXT}], [{"id": "q", "text": "?", "evidence": [evidence(12, 29)]}])
    (root / "run.txt").write_text("q Q0 a 1\n")
    manifest = read_manifest(root)
    write_manifest(replace(manifest, runs={"mine": PinnedFile(root / "run.txt", "")}))
    (finding,) = found(root)
    assert (finding.code, finding.where) == ("malformed", f"{root / 'run.txt'}:1")


def test_leaks(make_data: MakeData) -> None:
    """A query that occurs in the corpus, ignoring case and punctuation; a query that is itself a document."""
    documents = [
        {"id": "a", "text": f"{LONG} How long to rest the dough, then?"},
        {"id": "q2", "text": f"{'Rest it. ' * 9}Then bake it until brown."},
    ]
    asked = [
        {"id": "q1", "text": "How long to REST the dough?", "evidence": [{"doc": "a"}]},
        {"id": "q2", "text": "Rest it. " * 9, "evidence": [{"doc": "a"}]},
        {"id": "q3", "text": "Then bake it until brown", "ignore": ["q2"], "evidence": [{"doc": "a"}]},
        {"id": "q4", "text": "the dough then", "evidence": [{"doc": "a"}]},
    ]
    lines = [(finding.code, finding.what) for finding in found(make_data(documents, asked))]
    assert lines == [
        ("leaking-query", "query 'q1' occurs word for word in its evidence document 'a'"),
        ("self-query", "query 'q2' is the document with that id; `ignore: [\"q2\"]` keeps it out of its ranking"),
    ]


def test_a_question_inside_the_document_with_its_id(make_data: MakeData) -> None:
    """Is not a self-query: ignoring that document would remove the evidence."""
    text = f"FAQ. What is the boiling point of water? {LONG}"
    asked = {"id": "1", "text": "What is the boiling point of water?", "evidence": [{"doc": "1"}]}
    (finding,) = found(make_data([{"id": "1", "text": text}], [asked]))
    assert finding.code == "leaking-query"


def test_near_duplicates_are_compared_within_a_document(make_data: MakeData) -> None:
    """The most similar query with the same evidence document counts; other decades are other questions."""
    long = "how many spoons of which spice does one who has never cooked before need for the second step of this dish"
    asked = [
        {"id": "a", "text": f"{long} then today?", "evidence": [{"doc": "a"}]},
        {"id": "b", "text": f"{long} then tonight?", "evidence": [{"doc": "b"}]},
        {"id": "c", "text": f"{long} then?", "evidence": [{"doc": "b"}]},
        {"id": "d", "text": f"{long} in the 1980s?", "evidence": [{"doc": "b"}]},
        {"id": "e", "text": f"{long} in the 1990s?", "evidence": [{"doc": "b"}]},
    ]
    listed = found(make_data([{"id": "a", "text": "x" * 9}, {"id": "b", "text": "y" * 9}], asked))
    assert [(one.code, one.what.split("'")[1]) for one in listed] == [("near-duplicate-query", "c")]


def test_sizes(make_data: MakeData) -> None:
    """1,396 queries for a difference of 0.03: ((1.96 + 0.84) * 0.4 / 0.03)^2; 9 in 100 of that for 0.1."""
    root = make_data([{"id": "a", "text": TEXT}], [{"id": "q", "text": "?", "evidence": [evidence(12, 29)]}])
    record = {finding.code: finding.what for finding in check_dataset(root)}
    assert set(record) == SIZES
    assert "takes about 1,396" in record["few-queries"]
    assert "the queries form 1 cluster," in record["few-clusters"]
    assert "1 of 1 documents have fewer than 150 words (median 7)" in record["short-documents"]
    assert any("takes about 126" in finding.what for finding in check_dataset(root, effect=0.1))


def test_a_malformed_line_and_a_changed_file(make_data: MakeData) -> None:
    """Both are findings; the check goes on."""
    root = make_data([{"id": "a", "text": TEXT}], [{"id": "q", "text": "?", "evidence": [evidence(12, 29)]}])
    (root / "corpus.jsonl").write_text("{\n")
    assert [finding.code for finding in found(root)] == ["not-pinned", "malformed"]


def test_the_chroma_corpora_have_exactly_their_known_defects(shared: Callable[[str], Path], tmp_path: Path) -> None:
    """97 references occur more than once, 49 start or end inside a word, 217 have white space at an end, none differs.

    Also, 472 queries are fewer than the 1,396 needed for a difference of 0.03, and one query occurs in its document.
    """
    import_dataset("chroma", shared("chroma-chunking"), tmp_path / "chroma")
    listed = list(check_dataset(tmp_path / "chroma"))
    assert Counter(finding.code for finding in listed) == {
        "ambiguous": 97,
        "inside-word": 49,
        "white-space-edge": 217,
        "leaking-query": 1,
        "few-queries": 1,
        "few-clusters": 1,
    }
    assert all(finding.level == "warning" for finding in listed)


def test_the_shipped_cookbook_is_clean() -> None:
    """No errors; the only warnings are the unanswerable queries and the small number of queries."""
    root = Path(__file__).parents[3] / "datasets" / "cookbook"
    assert {finding.code for finding in check_dataset(root)} == {"no-evidence", "few-queries"}


def test_empty_files(make_data: MakeData) -> None:
    """The check reports them as errors, as a run refuses them."""
    root = make_data([{"id": "a", "text": TEXT}], [{"id": "q", "text": "?"}])
    (root / "corpus.jsonl").write_text("\n")
    (root / "queries/validation.jsonl").write_text("")
    assert [finding.code for finding in check_dataset(root)].count("empty-file") == 2


def test_every_kind_of_finding_has_a_meaning() -> None:
    """In one line."""
    assert all(meaning and "\n" not in meaning for meaning in CODES.values())
