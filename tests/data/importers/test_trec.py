"""TREC collections on a few lines: what is kept, what is counted, what is refused and how."""

import gzip
import shutil
from typing import Any

import pytest
from small_imports import Make, loaded, refused

from harness.data.dataset import load_dataset
from harness.data.manifest import read_manifest

DOCS = """<DOC>
<DOCNO> a#1 </DOCNO>
<TITLE>Salt &amp; sea</TITLE>
<TEXT>
The sea is <b>salty</b>.
</TEXT>
</DOC>
<DOC><DOCNO>b</DOCNO>
Rivers are not.</DOC>\x20
"""


TOPICS = """<top>
<num> Number: 7
<title> salty water
<desc> Description:
Which water
is salty?
</top>
<top><num>8</num><title>rivers</title></top>
"""


def test_trec(folder: Make) -> None:
    """Titles, entities, tags; `#` in ids; fields with and without end tags; CRLF, BOM and gzip alike."""
    qrels = b"\xef\xbb\xbf7 0 a#1 2\r\n7 0 b 0\r\n8 0 b 1\r\n8 0 zz 1\r\n8 0 b 1\r\n"
    source = folder({"docs.trec.gz": gzip.compress(DOCS.encode()), "topics.txt": TOPICS, "qrels": qrels})
    data = loaded("trec", source)
    assert [(doc.id, doc.title, doc.text) for doc in data.documents] == [
        ("a#1", "Salt & sea", "Salt & sea\n\nThe sea is salty."),
        ("b", "", "Rivers are not."),
    ]
    first, second = data.query_set.queries
    assert (first.text, second.text) == ("salty water", "rivers")
    assert [(item.places[0].doc, item.grade, item.absent) for item in first.evidence] == [("a#1", 2, False)]
    assert [(item.places[0].doc, item.absent) for item in second.evidence] == [("b", False), ("zz", True)]
    counts = read_manifest(source.parent / "data").imported["counts"]
    assert counts["repeated judgments, counted once"] == 1
    assert counts["validation judgments of grade 0 or below, which are no evidence"] == 1
    assert counts["validation judgments of documents that the corpus lacks, kept"] == 1


def test_trec_descriptions(folder: Make) -> None:
    """`topic: desc` takes the description, without its label; judgments as BEIR writes them are read as well."""
    files = {"docs.tsv": "a\tSea.\n", "qrels.tsv": "query-id\tcorpus-id\tscore\n7\ta\t1\n"}
    source = folder({**files, "topics.txt": TOPICS.split("</top>")[0]})
    assert loaded("trec", source, topic="desc").query_set.queries[0].text == "Which water is salty?"


def test_trec_chooses_the_topics_that_are_judged(folder: Make) -> None:
    """Of two files of topics, the one that has every judged query."""
    source = folder({"docs.tsv": "a\tSea.\n", "qrels": "7 0 a 1\n", "topics.txt": TOPICS, "topics2.tsv": "8\tother\n"})
    assert [query.id for query in loaded("trec", source).query_set.queries] == ["7"]


def test_documents_on_one_line_and_signs_that_are_no_tags(folder: Make) -> None:
    """Each `<DOC>` is a document, wherever it begins; only what looks like markup is taken out."""
    docs = (
        "<DOC><DOCNO>a</DOCNO>One.</DOC><DOC><DOCNO>b</DOCNO>Mail <j@x.org> if 1 <b and c> <font size=3>2</font>.</DOC>"
    )
    data = loaded("trec", folder({"docs.trec": docs, "qrels": "1 0 b 1\n"}))
    assert [(doc.id, doc.text) for doc in data.documents] == [("a", "One."), ("b", "Mail <j@x.org> if 1 <b and c> 2.")]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"docs.trec": "<DOC>\n<DOCNO>a</DOCNO>\n"}, "docs.trec:1: the document is not closed"),
        ({"docs.trec": "<DOC>\nx\n</DOC>\n"}, "docs.trec:1: the document has no <DOCNO>"),
        ({"docs.trec": "x\n"}, "docs.trec:1: expected <DOC>, got 'x'"),
        ({"docs.trec": f"{DOCS}{DOCS}"}, "docs.trec:10: document 'a#1' already occurs in line 1"),
        ({"docs.trec": "<DOC>\n<DOC>\n"}, "docs.trec:2: <DOC> inside the document that begins in line 1"),
        ({"topics.txt": "<top><title>x</title></top>"}, "topics.txt:1: the topic has no <num>"),
        ({"topics.txt": "<top><num>7</num></top>"}, "topics.txt:1: topic '7' has no <title>"),
        ({"topics.txt": "7\tx\n7\ty\n"}, "topics.txt:2: topic '7' already occurs in line 1"),
        ({"topics.txt": ""}, "topics.txt: contains no topic"),
        ({"qrels": "7 0 a#1 1\n7 0 a#1 2\n"}, "qrels:2: query '7' judges document 'a#1' twice, 2 here and 1 before"),
        ({"qrels": "7 0 a#1 1\n9 0 a#1 2\n"}, "qrels:2: no query '9' among the 2 queries"),
        ({"qrels": "7 0 a#1\n"}, "qrels:1: expected query, document and score"),
        ({"qrels": "7 0 a#1 1.5\n"}, "qrels:1: score: expected a whole number"),
        ({"qrels": "7 0 a#1 1e99\n"}, "qrels:1: score: expected a whole number"),
        ({"qrels": ""}, "qrels: contains no judgment"),
        ({"docs.trec": b"<DOC>\n\xff\n"}, "docs.trec:2: not UTF-8 (byte 1 of the line)"),
    ],
)
def test_trec_faults(folder: Make, changes: dict[str, Any], what: str) -> None:
    """File and line."""
    files = {"docs.trec": DOCS, "topics.txt": TOPICS, "qrels": "7 0 a#1 2\n"}
    assert what in refused("trec", folder({**files, **changes}))


def test_trec_topics_of_each_set(folder: Make) -> None:
    """Sets with files of topics of their own may number them alike."""
    source = folder(
        {"docs.tsv": "d\tSea.\n", "ta": "1\tfirst\n", "tb": "1\tsecond\n", "qa": "1 0 d 1\n", "qb": "1 0 d 1\n"}
    )
    (source / "ta").rename(source / "ta.tsv")
    (source / "tb").rename(source / "tb.tsv")
    data = loaded("trec", source, "a", queries={"a": "ta.tsv", "b": "tb.tsv"}, qrels={"a": "qa", "b": "qb"})
    assert data.query_set.queries[0].text == "first"
    assert load_dataset(data.root, "b").query_set.queries[0].text == "second"
    shutil.rmtree(data.root)
    output = refused("trec", source, queries={"a": "ta.tsv"}, qrels={"a": "qa", "b": "qb"})
    assert "no topics for the set 'b'" in output


def test_latin_1(folder: Make) -> None:
    """Old collections are; the option says so."""
    source = folder({"docs.tsv": "a\tCafé.\n".encode("latin-1"), "qrels": "1 0 a 1\n", "queries.tsv": "1\tx\n"})
    assert loaded("trec", source, encoding="latin-1").documents[0].text == "Café."


def test_utf_8_by_any_name(folder: Make) -> None:
    """A byte order mark is none of the first id."""
    source = folder({"docs.tsv": b"\xef\xbb\xbfa\tSea.\n", "qrels": "1 0 a 1\n"})
    assert loaded("trec", source, encoding="utf8").documents[0].id == "a"


def test_a_run_is_read_when_it_is_imported(folder: Make) -> None:
    """Gzipped ones too; a malformed one is refused with its line."""
    files = {"docs.tsv": "a\tSea.\n", "qrels": "1 0 a 1\n", "x.run.gz": gzip.compress(b"1 Q0 a 1 0.5 x\n")}
    source = folder({**files, "y.run": "nonsense\n"})
    data = loaded("trec", source, runs={"mine": "x.run.gz"})
    assert (data.root / "runs/mine.txt").read_text() == "1 Q0 a 1 0.5 x\n"
    assert "x.run.gz" in read_manifest(data.root).imported["files"]
    shutil.rmtree(data.root)
    assert "y.run:1: expected query, Q0, document" in refused("trec", source, runs={"mine": "y.run"})


def test_a_damaged_gzip_file(folder: Make) -> None:
    """One line."""
    source = folder({"docs.tsv.gz": gzip.compress(b"a\tb\n" * 999)[:-20], "qrels": "1 0 a 1\n"})
    assert "the gzip file is damaged or cut short" in refused("trec", source)
