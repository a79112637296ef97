"""Imports: grades, titles and irrelevant documents, and no partial results."""

from pathlib import Path

import pytest

from harness.core.errors import ConfigError, DataError
from harness.data.dataset import load_dataset, read_corpus
from harness.data.importers import Options, import_dataset
from harness.data.manifest import read_manifest


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "d#1", "title": "T", "text": "x"}\n{"_id": "d2", "text": "y"}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "?"}\n{"_id": "q2", "text": "!"}\n')
    (folder / "qrels/dev.tsv").write_bytes(b"query-id\tcorpus-id\tscore\r\nq1\td#1\t2\r\nq1\td2\t0\r\nq2\tgone\t1\r\n")
    return folder


def test_grades_negatives_and_absent_documents(beir: Path, tmp_path: Path) -> None:
    """Grade 0 is not evidence; judged documents missing from the corpus are kept and counted; `#` is part of an id."""
    counts = import_dataset("beir", beir, tmp_path / "out")
    assert counts["dev judgments of documents that the corpus lacks, kept"] == 1
    first, second = load_dataset(tmp_path / "out", "dev").query_set.queries
    assert [(item.places[0].doc, item.grade) for item in first.evidence] == [("d#1", 2)]
    assert [(item.places[0].doc, item.absent) for item in second.evidence] == [("gone", True)]


@pytest.mark.parametrize(
    ("file", "content", "what"),
    [
        ("qrels/dev.tsv", b"q1\td2\n", "dev.tsv:1: expected query, document and score"),
        (
            "qrels/dev.tsv",
            b"q1\td2\t1\nq1\td2\tyes\n",
            "dev.tsv:2: score: expected a whole number",
        ),
        ("qrels/dev.tsv", b"q1\td2\t1\nq1\td2\t2\n", "dev.tsv:2: query 'q1' judges document 'd2' twice"),
        ("qrels/dev.tsv", b"q\xe9\td2\t1\n", "dev.tsv:1: not UTF-8"),
        ("corpus.jsonl", b'{"_id": "d2", "text": "x"}\n' * 2, "corpus.jsonl:2: document 'd2' already occurs in line 1"),
        ("queries.jsonl", b'{"_id": "q1", "text": "x"}\n' * 2, "queries.jsonl:2: query 'q1' already occurs in line 1"),
        ("qrels/dev.tsv", b"q9\td2\t1\n", "dev.tsv:1: no query 'q9'"),
        ("corpus.jsonl", b'{"_id": [7], "text": "x"}\n', "corpus.jsonl:1: _id: expected text, got [7]"),
        ("queries.jsonl", b"{]\n", "queries.jsonl:1: not valid JSON"),
        ("corpus.jsonl", b'{"_id": "d2", "text": "\\udfff"}\n', "half a surrogate pair"),
    ],
)
def test_a_failed_import_leaves_nothing(beir: Path, tmp_path: Path, file: str, content: bytes, what: str) -> None:
    """One line that names file and line, and no folder."""
    (beir / file).write_bytes(content)
    with pytest.raises(DataError) as caught:
        import_dataset("beir", beir, tmp_path / "out")
    assert what in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["beir"]


def test_an_existing_data_set_is_not_overwritten(beir: Path, tmp_path: Path) -> None:
    """Not even by the same one."""
    import_dataset("beir", beir, tmp_path / "out")
    with pytest.raises(DataError, match="already contains files"):
        import_dataset("beir", beir, tmp_path / "out")


def test_titles(beir: Path, tmp_path: Path) -> None:
    """By default `beir` puts them into the text and tables keep them separate; both count what they did."""
    table = tmp_path / "table"
    table.mkdir()
    (table / "documents.jsonl").write_text('{"id": "d#1", "title": "T", "text": "x"}\n{"id": "d2", "text": "y"}\n')
    (table / "queries.jsonl").write_text('{"id": "q1", "text": "?", "doc": "d#1"}\n')
    columns = {"evidence.doc": "doc"}
    into, beside = "titles put into the text, as its first paragraph", "titles kept separate from the text"
    for kind, source, usual in (("beir", beir, into), ("jsonl", table, beside)):
        for titles in (None, "text", "separate"):
            target = tmp_path / f"{kind}-{titles}"
            options = Options(titles=titles, columns=columns if kind == "jsonl" else {})  # type: ignore[arg-type]
            counts = import_dataset(kind, source, target, options=options)
            wanted = {None: usual, "text": into, "separate": beside}[titles]
            assert [count for what, count in counts.items() if what.startswith(wanted)] == [1], (kind, titles)
            first = read_corpus(read_manifest(target))[0]
            assert (first.text, first.title) == ("T\n\nx" if wanted == into else "x", "T")


def test_offsets_and_titles_in_the_text_are_refused(tmp_path: Path) -> None:
    """Offsets refer to the text without the title; formats with offsets do not support the option."""
    table = tmp_path / "table"
    table.mkdir()
    (table / "documents.csv").write_text("id,title,text\nd,T,x y z\n")
    (table / "queries.csv").write_text("id,text,doc,start,end\nq,?,d,0,1\n")
    columns = {"evidence.doc": "doc", "evidence.start": "start", "evidence.end": "end"}
    with pytest.raises(DataError, match="offsets refer to the text without the title; leave out --titles text"):
        import_dataset("csv", table, tmp_path / "out", options=Options(columns=columns, titles="text"))
    with pytest.raises(ConfigError, match="import squad does not use --titles"):
        import_dataset("squad", table, tmp_path / "out", options=Options(titles="text"))


def test_judgments_of_grade_zero_are_kept_as_irrelevant(beir: Path, tmp_path: Path) -> None:
    """From qrels and from tables, also in the harness's own format."""
    import_dataset("beir", beir, tmp_path / "out")
    assert load_dataset(tmp_path / "out", "dev").query_set.queries[0].irrelevant == ("d2",)
    table = tmp_path / "table"
    table.mkdir()
    (table / "documents.csv").write_text("id,text\nd,x\ne,y\nf,z\n")
    (table / "queries.csv").write_text('id,text,doc,grade,unjudged\nq,?,d,1,"[""f""]"\nq,?,e,0,\n')
    columns = {"evidence.doc": "doc", "evidence.grade": "grade"}
    import_dataset("csv", table, tmp_path / "again", options=Options(columns=columns))
    (query,) = load_dataset(tmp_path / "again", "validation").query_set.queries
    assert (query.irrelevant, query.unjudged, len(query.evidence)) == (("e",), ("f",), 1)


def test_further_columns_of_judgments_separated_by_tabs(beir: Path, tmp_path: Path) -> None:
    """A header says which column is the grade; later columns are ignored in every line."""
    (beir / "qrels/dev.tsv").write_text("query-id\tcorpus-id\tscore\tassessor\nq1\td#1\t2\t7\nq2\td2\t1\tAda\n")
    counts = import_dataset("beir", beir, tmp_path / "out")
    assert counts["judgments with further columns, left out"] == 2
    first, second = load_dataset(tmp_path / "out", "dev").query_set.queries
    assert [(item.places[0].doc, item.grade) for q in (first, second) for item in q.evidence] == [("d#1", 2), ("d2", 1)]
