"""Each format on a few lines that can be read here: what is kept, what is counted, what is refused and how."""

import gzip
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from evidence_text import text_of

from harness.core.errors import ConfigError, DataError, HarnessError
from harness.core.records import Query, Span
from harness.data.dataset import Dataset, load_dataset
from harness.data.importers import Options, import_dataset
from harness.data.manifest import read_manifest

Make = Callable[[dict[str, Any]], Path]


@pytest.fixture
def folder(tmp_path: Path) -> Make:
    """Writes files; what is not text or bytes becomes JSON."""

    def made(files: dict[str, Any]) -> Path:
        for name, content in files.items():
            path = tmp_path / "source" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return tmp_path / "source"

    return made


def loaded(kind: str, source: Path, chosen: str = "validation", **options: Any) -> Dataset:
    target = source.parent / "data"
    import_dataset(kind, source, target, options=Options(**options))
    return load_dataset(target, chosen, copies="ignore", final=True)


def spans(query: Query) -> list[list[Span]]:
    return [list(item.places) for item in query.evidence]


def refused(kind: str, source: Path, **options: Any) -> str:
    """The one line an import is refused with; nothing is left of it."""
    target = source.parent / "data"
    with pytest.raises(HarnessError) as caught:
        import_dataset(kind, source, target, options=Options(**options))
    assert [path for path in source.parent.iterdir() if path != source] == []
    assert "\n" not in str(caught.value)
    return str(caught.value)


# -- TREC

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
        ({"docs.trec": f"{DOCS}{DOCS}"}, "docs.trec:10: document 'a#1' stands in line 1 already"),
        ({"docs.trec": "<DOC>\n<DOC>\n"}, "docs.trec:2: <DOC> inside the document that begins in line 1"),
        ({"topics.txt": "<top><title>x</title></top>"}, "topics.txt:1: the topic has no <num>"),
        ({"topics.txt": "<top><num>7</num></top>"}, "topics.txt:1: topic '7' has no <title>"),
        ({"topics.txt": "7\tx\n7\ty\n"}, "topics.txt:2: topic '7' stands in line 1 already"),
        ({"topics.txt": ""}, "topics.txt: holds no topic"),
        ({"qrels": "7 0 a#1 1\n7 0 a#1 2\n"}, "qrels:2: query '7' judges document 'a#1' a second time, 2 instead of 1"),
        ({"qrels": "7 0 a#1 1\n9 0 a#1 2\n"}, "qrels:2: no query '9' among the 2 queries"),
        ({"qrels": "7 0 a#1\n"}, "qrels:1: expected query, document and score"),
        ({"qrels": "7 0 a#1 1.5\n"}, "qrels:1: score: expected a whole number"),
        ({"qrels": "7 0 a#1 1e99\n"}, "qrels:1: score: expected a whole number"),
        ({"qrels": ""}, "qrels: holds no judgment"),
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


# -- queries that are documents


def test_self_hits_are_ignored_on_request(folder: Make) -> None:
    """By id, as BEIR does it for ArguAna and its like; the query is never given that document."""
    corpus = '{"_id": "a", "text": "Salt is good."}\n{"_id": "b", "text": "Salt is bad."}\n'
    files = {"corpus.jsonl": corpus, "queries.jsonl": '{"_id": "a", "text": "Salt is good."}\n'}
    source = folder({**files, "qrels/dev.tsv": "a\tb\t1\n"})
    plain = loaded("beir", source, "dev").query_set.queries[0]
    assert plain.ignore == ()
    shutil.rmtree(source.parent / "data")
    assert loaded("beir", source, "dev", ignore_self=True).query_set.queries[0].ignore == ("a",)


# -- SQuAD


def squad(*paragraphs: tuple[str, list[dict[str, Any]]], title: str = "Salt") -> dict[str, Any]:
    lines = [{"context": context, "qas": qas} for context, qas in paragraphs]
    return {"version": "x", "data": [{"title": title, "paragraphs": lines}]}


def asked(name: str, *answers: tuple[str, int], **more: Any) -> dict[str, Any]:
    return {"id": name, "question": f"{name}?", "answers": [{"text": t, "answer_start": s} for t, s in answers], **more}


def test_squad(folder: Make) -> None:
    """Offsets move with the paragraphs; several people's answers are equivalent; impossible ones have no evidence."""
    content = squad(
        ("Salt is white.", [asked("q1", ("white", 8), ("Salt", 0), ("white", 8))]),
        ("The sea is blue.", [asked("q2", ("blue", 11)), asked("q3", ("x", 0), is_impossible=True), asked("q4")]),
    )
    data = loaded("squad", folder({"x.json": content}))
    assert data.documents[0].text == "Salt is white.\n\nThe sea is blue."
    one, two, three, four = data.query_set.queries
    assert spans(one) == [[Span("Salt", 8, 13), Span("Salt", 0, 4)]]
    assert text_of(data, spans(two)[0][0]) == "blue"
    assert (three.evidence, three.answer, four.evidence) == ((), None, ())


def test_a_wrong_offset_is_kept_as_it_is_for_the_check(folder: Make) -> None:
    """The import changes nothing; loading refuses it and names the place and the shift."""
    source = folder({"x.json": squad(("Salt is white.", [asked("q1", ("white", 7))]))})
    with pytest.raises(DataError, match=r"validation.jsonl:1: .*it stands \+1 characters away, at 8-13"):
        loaded("squad", source)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("{", "x.json:1: not valid JSON"),
        ('{\n\n"data": [}', "x.json:3: not valid JSON"),
        ([], "the file: expected an object"),
        ({"data": {}}, "data: expected a list"),
        ({"data": [{"paragraphs": [{"qas": []}]}]}, "x.json: data[0].paragraphs[0]: context: is missing"),
        (squad(("x", [{"id": "q"}])), "x.json: data[0].paragraphs[0].qas[0]: question: is missing"),
        (squad(("x", [asked("q", ("x", True))])), "answer_start: expected a whole number, got True"),
        (squad(("x", [asked("q", ("x", 0)), asked("q", ("x", 0))])), "query 'q' stands in data[0]"),
        (squad(("x", [asked("q", is_impossible="no")])), "is_impossible: expected true or false, got 'no'"),
        (squad(("\ud800", [])), "half a surrogate pair"),
        ({"data": []}, "holds no document of this format"),
    ],
)
def test_squad_faults(folder: Make, content: Any, what: str) -> None:
    """File, and place in it."""
    assert what in refused("squad", folder({"x.json": content}))


# -- HotpotQA


def hotpot(facts: list[Any], name: str = "q1", **more: Any) -> dict[str, Any]:
    context = [["Sea", ["The sea is salty.", " It is blue. "]], ["River", ["Rivers flow."]]]
    record = {"_id": name, "question": "Why?", "answer": "salt", "type": "bridge", "level": "easy"}
    return {**record, "context": context, "supporting_facts": facts, **more}


def test_hotpotqa(folder: Make) -> None:
    """A sentence an item, without the white space around it; passages that several questions share stand once."""
    content = [
        hotpot([["Sea", 1], ["River", 0], ["Sea", 1]]),
        hotpot([["Sea", 0], ["Sea", 9]], "q2"),
        hotpot([["X", 0]], "q3"),
    ]
    data = loaded("hotpotqa", folder({"train.json": content, "train_corpus.json": {}}))
    assert [(doc.id, doc.text) for doc in data.documents] == [
        ("Sea", "The sea is salty. It is blue. "),
        ("River", "Rivers flow."),
    ]
    one, two = data.query_set.queries
    assert [text_of(data, places[0]) for places in spans(one)] == ["It is blue.", "Rivers flow."]
    assert [text_of(data, places[0]) for places in spans(two)] == ["The sea is salty."]
    counts = read_manifest(data.root).imported["counts"]
    assert counts["supporting facts without a sentence, left out"] == 2
    assert counts["questions without a supporting sentence, left out"] == 1


def test_passages_of_one_title_with_other_sentences(folder: Make) -> None:
    """Are two documents."""
    other = hotpot([["Sea", 0]], "q2") | {"context": [["Sea", ["Another sea."]]]}
    data = loaded("hotpotqa", folder({"x.json": [hotpot([["Sea", 0]]), other]}))
    assert [doc.id for doc in data.documents] == ["Sea", "River", "Sea (2)"]
    assert text_of(data, spans(data.query_set.queries[1])[0][0]) == "Another sea."


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ({}, "expected a list of questions"),
        ([1], "x.json: [0]: question: expected an object"),
        ([hotpot([["Sea"]])], "[0]: supporting_facts[0]: expected a title and the number of a sentence"),
        ([hotpot([]) | {"context": [["Sea", [1]]]}], "[0]: context[0]: expected a title and its sentences"),
    ],
)
def test_hotpotqa_faults(folder: Make, content: Any, what: str) -> None:
    """File, and place in it."""
    assert what in refused("hotpotqa", folder({"x.json": content}))


# -- ContractNLI


def contract(**more: Any) -> dict[str, Any]:
    annotations = {"n1": {"choice": "Entailment", "spans": [1, 1]}, "n2": {"choice": "NotMentioned", "spans": []}}
    record = {"id": 3, "file_name": "x.pdf", "text": "Secrets\nKeep them.", "spans": [[0, 7], [8, 18]]}
    return {**record, "annotation_sets": [{"annotations": annotations}], **more}


LABELS = {name: {"hypothesis": f"Hypothesis {name}."} for name in ("n1", "n2")}


def test_contract_nli(folder: Make) -> None:
    """A query a pair, told apart by the contract's title; what is not mentioned has no evidence."""
    data = loaded("contract-nli", folder({"dev.json": {"documents": [contract(), contract(id=4)], "labels": LABELS}}))
    one, two, *_ = data.query_set.queries
    assert (one.text, text_of(data, spans(one)[0][0])) == ("Secrets (contract-3): Hypothesis n1.", "Keep them.")
    assert (two.evidence, two.metadata["choice"]) == ((), "NotMentioned")


@pytest.mark.parametrize(
    ("document", "what"),
    [
        (contract(spans=[[0]]), "documents[0]: spans[0]: expected start and end"),
        (contract(spans=[[0, 7]]), "annotations.n1.spans: the contract has spans 0 to 0, got [1, 1]"),
        (contract(annotation_sets=[]), "annotation_sets: expected one, got 0"),
        (contract(text=None), "text: expected text, got None"),
    ],
)
def test_contract_nli_faults(folder: Make, document: Any, what: str) -> None:
    """File, and place in it."""
    assert what in refused("contract-nli", folder({"dev.json": {"documents": [document], "labels": LABELS}}))


# -- tables


def test_csv_with_quotes_and_offsets(folder: Make) -> None:
    """A row an item; a quote is found, also but for its white space and in whichever document; BOM and CRLF too."""
    documents = '\ufeffid,text,year\r\na,"Salt\r\nis white. Salt is good.",2001\r\nb,Water is wet.,\r\n'
    queries = (
        "id,question,doc,start,end,quote,answer\n"
        "q1,Colour?,a,,,Salt is white,white\n"
        "q1,Colour?,b,0,5,Water,\n"
        "q2,Wet?,,,,is wet.,\n"
        "q3,Both?,a,,,Salt,\n"
        "q4,None?,,,,,\n"
    )
    data = loaded("csv", folder({"documents.csv": documents, "queries.csv": queries}))
    assert data.documents[0].text == "Salt\r\nis white. Salt is good."
    assert dict(data.documents[0].metadata) == {"year": "2001"}
    found = {query.id: spans(query) for query in data.query_set.queries}
    assert found == {
        "q1": [[Span("a", 0, 14)], [Span("b", 0, 5)]],
        "q2": [[Span("b", 6, 13)]],
        "q3": [[Span("a", 0, 4), Span("a", 16, 20)]],
        "q4": [],
    }
    assert data.query_set.queries[0].answer == "white"


def test_jsonl_with_columns_of_ones_own(folder: Make) -> None:
    """Lists of documents, grades, a JSON array of queries, names given by `map`."""
    files = {
        "docs.jsonl": '{"link": "a", "body": "x"}\n{"link": "b", "body": "y"}\n',
        "q.json": [{"q": "Why?", "gold": ["a", "b", "zz"], "rel": 2}, {"q": "How?", "gold": []}],
    }
    columns = {"doc.id": "link", "doc.text": "body", "query.text": "q", "evidence.doc": "gold", "evidence.grade": "rel"}
    data = loaded("jsonl", folder(files), corpus="docs.jsonl", queries={"": "q.json"}, columns=columns, absent=True)
    one, two = data.query_set.queries
    assert [(item.places[0].doc, item.grade, item.absent) for item in one.evidence] == [
        ("a", 2, False),
        ("b", 2, False),
        ("zz", 2, True),
    ]
    assert (one.id, two.id, two.evidence) == ("q1", "q2", ())


@pytest.mark.parametrize(
    ("queries", "what"),
    [
        (
            "id,question,doc,quote\nq,x?,a,Sugar\n",
            "queries.csv:2: evidence.quote: 'Sugar' does not stand in document 'a'",
        ),
        ("id,question,quote\nq,x?,Sugar\n", "queries.csv:2: evidence.quote: 'Sugar' does not stand in any document"),
        ("id,question,doc,quote\nq,x?,zz,Salt\n", "queries.csv:2: no document 'zz' in the corpus"),
        ("id,question\nq,x?\nq,y?\n", "queries.csv:3: query 'q' has another text in line 2"),
        ("id,question\nq\n", "queries.csv:2: expected 2 columns (id, question), got 1"),
        ('id,question\nq,"x\n', "queries.csv:2: unexpected end of data"),
        ("id,id\nq,x\n", "queries.csv:1: two columns have the same name"),
        ("id,words\nq,x\n", "no column for query.text; there is id, words; say which it is with --map"),
        ("id,question,doc,start\nq,x?,a,0\n", "evidence.end: is missing"),
        ("id,question,doc,start,end\nq,x?,a,zero,4\n", "evidence.start: expected a whole number, got 'zero'"),
        (
            "id,question,start,end\nq,x?,0,4\n",
            "offsets, and no column for evidence.doc; there is id, question, start, end",
        ),
        ("id,question,doc,quote\nq,x?,a,  \n", "evidence.quote: is nothing but white space"),
        ("id,question,document,quote\nq,x?,b,Salt.\n", "queries.csv:2: no document 'b' in the corpus"),
        ("id,question,doc\nq,x?,a;b\n", "queries.csv:2: no document 'a;b' in the corpus; --absent keeps such evidence"),
        (
            "id,question,doc,grade\nq,x?,a,0\nq,x?,a,1\n",
            "queries.csv:3: document 'a' is judged a second time, 1 instead of 0",
        ),
        ("id,question,doc,start,end\nq,x?,zz,0,4\n", "queries.csv:2: no document 'zz' in the corpus"),
        ("id,question,doc,end\nq,x?,a,4\n", "queries.csv:2: evidence.start: is missing, and there is an end"),
        (
            "id,question,doc,answer\nq,x?,a,one\nq,x?,a,two\n",
            "queries.csv:3: query.answer: 'two' here, and 'one' in a row",
        ),
        ("id,question,evidence\nq,x?,a\n", "queries.csv:2: evidence: expected a list of items; for a column of"),
        ("id,question,doc,grade\nq,x?,a,good\n", "evidence.grade: expected a number"),
    ],
)
def test_table_faults(folder: Make, queries: str, what: str) -> None:
    """File and line."""
    assert what in refused("csv", folder({"documents.csv": "id,text\na,Salt.\n", "queries.csv": queries}))


def test_a_column_that_no_row_has_is_refused(folder: Make) -> None:
    """A slip in an optional part would take all evidence away."""
    source = folder({"documents.csv": "id,text\na,Salt.\n", "queries.csv": "id,question,passage\nq,x?,Salt.\n"})
    output = refused("csv", source, columns={"evidence.quote": "pasage"})
    assert "--map evidence.quote=pasage: no row has a column 'pasage'. Did you mean 'passage'?" in output


def test_the_harness_own_lines(folder: Make) -> None:
    """Evidence, grade, what is ignored, metadata, further columns: nothing is lost."""
    line = {
        "id": "q",
        "text": "x?",
        "evidence": [{"doc": "a"}],
        "grade": 2,
        "ignore": ["b"],
        "metadata": {"group": "g"},
    }
    documents = '{"id": "a", "text": "x"}\n{"id": "b", "text": "y"}\n'
    source = folder({"documents.jsonl": documents, "queries.jsonl": json.dumps({**line, "level": "hard"})})
    (query,) = loaded("jsonl", source).query_set.queries
    assert (query.evidence[0].grade, query.ignore) == (2, ("b",))
    assert query.metadata == {"group": "g", "level": "hard"}


def test_quotes_without_a_document_go_where_they_stand_best(folder: Make) -> None:
    """As whole words before inside words, exactly before loosely, whatever comes first; `[1]` is a text."""
    documents = "id,text\na,A category in 2010.\nb,The cat  sat. See [1] here.\nc,The cat sat.\n"
    queries = "id,question,quote\nq1,?,cat\nq2,?,The cat sat.\nq3,?,[1]\n"
    data = loaded("csv", folder({"documents.csv": documents, "queries.csv": queries}))
    found = [spans(query)[0][0] for query in data.query_set.queries]
    assert found == [Span("b", 4, 7), Span("c", 0, 12), Span("b", 18, 21)]


def test_an_unnamed_column_is_nothing(folder: Make) -> None:
    """pandas writes its index so."""
    queries = ",id,question,doc\n0,q1,one?,a\n1,q2,two?,b\n"
    data = loaded("csv", folder({"documents.csv": ",id,text\n0,a,x\n1,b,y\n", "queries.csv": queries}))
    assert [(doc.title, dict(doc.metadata)) for doc in data.documents] == [("", {}), ("", {})]
    found = [(query.evidence[0].places[0].doc, query.answer, query.metadata) for query in data.query_set.queries]
    assert found == [("a", None, {}), ("b", None, {})]


def test_rows_of_one_query_together(folder: Make) -> None:
    """Nothing of a later row is lost: what is ignored, further columns; answers must not contradict each other."""
    queries = "id,question,doc,answer,ignore,page\nq,?,a,one,,3\nq,?,b,,b,7\n"
    data = loaded("csv", folder({"documents.csv": "id,text\na,x\nb,y\n", "queries.csv": queries}))
    (query,) = data.query_set.queries
    assert (query.answer, query.ignore, query.metadata) == ("one", ("b",), {"page": ["3", "7"]})


def test_grades_of_tables(folder: Make) -> None:
    """Fractions are kept; 0 and below is counted and no evidence."""
    queries = "id,question,doc,grade\nq,?,a,0.5\nq,?,b,0\n"
    data = loaded("csv", folder({"documents.csv": "id,text\na,x\nb,y\n", "queries.csv": queries}))
    assert [(item.places[0].doc, item.grade) for item in data.query_set.queries[0].evidence] == [("a", 0.5)]
    counts = read_manifest(data.root).imported["counts"]
    assert counts["validation judgments of grade 0 or below, which are no evidence"] == 1


# -- Hugging Face


def parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


def test_huggingface_retrieval_tables(tmp_path: Path) -> None:
    """As BEIR and MTEB have them on the Hub: configurations corpus and queries, judgments by split."""
    source = tmp_path / "source"
    parquet(source / "corpus/corpus/0000.parquet", [{"_id": "a", "title": "T", "text": "x"}])
    parquet(source / "corpus/corpus/0001.parquet", [{"_id": "b", "title": "", "text": "y"}])
    parquet(source / "queries/queries-00000-of-00001.parquet", [{"_id": "q", "text": "?"}])
    parquet(source / "default/test/0000.parquet", [{"query-id": "q", "corpus-id": "b", "score": 1.0}])
    parquet(source / "default/dev/0000.parquet", [{"query-id": "q", "corpus-id": "a", "score": 2.0}])
    data = loaded("huggingface", source, "test")
    assert [doc.text for doc in data.documents] == ["T\n\nx", "y"]
    assert data.query_set.queries[0].evidence[0].places[0].doc == "b"
    assert read_manifest(data.root).queries["test"].locked


def test_huggingface_squad_and_hotpotqa(tmp_path: Path) -> None:
    """By their columns, from Parquet and from what `save_to_disk` writes."""
    import pyarrow as pa

    rows = [
        {
            "id": "1",
            "title": "Salt",
            "context": "Salt is white.",
            "question": "Q1?",
            "answers": {"text": ["white"], "answer_start": [8]},
        },
        {"id": "2", "title": "Salt", "context": "Sea.", "question": "Q2?", "answers": {"text": [], "answer_start": []}},
    ]
    source = tmp_path / "source"
    (source / "train").mkdir(parents=True)
    table = pa.Table.from_pylist(rows)
    with (
        pa.OSFile(str(source / "train/data-00000-of-00001.arrow"), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as out,
    ):
        out.write_table(table)
    (source / "train/dataset_info.json").write_text("{}")
    parquet(source / "dev-00000-of-00001.parquet", [{**rows[1], "id": "3"}])
    data = loaded("huggingface", source, "train")
    # An article of which both splits have paragraphs is a document in each.
    assert [(doc.id, doc.text) for doc in data.documents] == [("Salt", "Sea."), ("Salt (2)", "Salt is white.\n\nSea.")]
    one, two = data.query_set.queries
    assert (text_of(data, spans(one)[0][0]), two.evidence) == ("white", ())
    hops = tmp_path / "hops"
    parquet(
        hops / "source/data/validation-00000-of-00001.parquet",
        [
            {
                "id": "h",
                "question": "Why?",
                "answer": "x",
                "context": {"title": ["Sea"], "sentences": [["It is salty.", " It is wet."]]},
                "supporting_facts": {"title": ["Sea"], "sent_id": [1]},
            }
        ],
    )
    data = loaded("huggingface", hops / "source")
    assert text_of(data, spans(data.query_set.queries[0])[0][0]) == "It is wet."


def test_huggingface_columns_of_ones_own(tmp_path: Path) -> None:
    """Tables by name."""
    source = tmp_path / "source"
    parquet(source / "docs/train/0000.parquet", [{"key": "a", "body": "Salt is white."}])
    parquet(source / "asked/train/0000.parquet", [{"question": "Colour?", "key": "a", "quote": "white"}])
    columns = {"doc.id": "key", "doc.text": "body", "evidence.doc": "key"}
    data = loaded("huggingface", source, corpus="docs/train", queries={"": "asked/train"}, columns=columns)
    assert text_of(data, spans(data.query_set.queries[0])[0][0]) == "white"


def test_huggingface_odd_columns(tmp_path: Path) -> None:
    """Dates, bytes and missing numbers in other columns; untitled contexts are documents of their own."""
    import datetime

    rows = [
        {
            "id": at,
            "context": context,
            "question": f"Q{at}?",
            "answers": {"text": ["It"], "answer_start": [0]},
            "when": datetime.date(2020, 1, 1),
            "raw": b"\x00",
            "score": float("nan"),
        }
        for at, context in enumerate(("It is.", "It was.", "It is."))
    ]
    source = tmp_path / "source"
    parquet(source / "train-00000-of-00001.parquet", rows)
    data = loaded("huggingface", source, "train")
    assert [doc.text for doc in data.documents] == ["It is.", "It was."]
    shutil.rmtree(data.root)
    parquet(
        source / "train-00000-of-00001.parquet", [{**rows[0], "answers": {"text": ["It", "x"], "answer_start": [0]}}]
    )
    assert "answers: 2 texts and 1 answer_start" in refused("huggingface", source)
    (source / "train-00000-of-00001.parquet").unlink()
    parquet(source / "corpus.parquet", [{"_id": 1, "text": "x", "when": datetime.date(2020, 1, 1)}])
    parquet(source / "queries.parquet", [{"_id": 7, "text": "?"}])
    parquet(source / "qrels/dl-2019.parquet", [{"query-id": 7, "corpus-id": 1, "score": 1}])
    parquet(source / "qrels/dl-2020.parquet", [{"query-id": 7, "corpus-id": 1, "score": 2}])
    data = loaded("huggingface", source, "dl-2019")
    assert sorted(read_manifest(data.root).queries) == ["dl-2019", "dl-2020"]


def test_huggingface_configurations_with_the_same_split(tmp_path: Path) -> None:
    """Are refused by name; a name with dots is one name."""
    source = tmp_path / "source"
    row = {"id": "1", "context": "It is.", "question": "?", "answers": {"text": ["It"], "answer_start": [0]}}
    for name in ("en", "de"):
        parquet(source / name / "validation-00000-of-00001.parquet", [row])
    assert "de/validation and en/validation are both a split 'validation'" in refused("huggingface", source)
    shutil.rmtree(source)
    parquet(source / "squad.train.parquet", [row])
    parquet(source / "squad.dev.parquet", [{**row, "id": "2"}])
    data = loaded("huggingface", source, "squad.dev")
    assert sorted(read_manifest(data.root).queries) == ["squad.dev", "squad.train"]


def test_huggingface_faults(folder: Make, tmp_path: Path) -> None:
    """What is no data set, what is not recognized, a damaged file, a name the Hub cannot be asked for."""
    source = folder({"x.parquet": b"PAR1 nonsense"})
    assert "x.parquet: cannot be read" in refused("huggingface", source)
    (source / "x.parquet").unlink()
    parquet(source / "y.parquet", [{"a": 1}])
    assert "not recognized by its columns (y: a)" in refused("huggingface", source)
    with pytest.raises(DataError, match="nowhere: no such folder; a data set of the Hub is named like"):
        import_dataset("huggingface", "nowhere", tmp_path / "data")
    with pytest.raises(DataError, match="cannot be had from the Hub"):
        import_dataset("huggingface", "no/such", tmp_path / "data")


# -- all of them


def test_options_without_a_use_are_refused(folder: Make) -> None:
    """Rather than silently passed over."""
    assert refused("squad", folder({"x.json": {}}), topic="desc") == "import squad has no use for --topic"
    with pytest.raises(ConfigError, match="no such column. Did you mean 'query.text'"):
        Options(columns={"query.txt": "x"})
    with pytest.raises(ConfigError, match="expected a name of letters"):
        Options(name="../x")
    with pytest.raises(ConfigError, match="is no encoding of lines of text"):
        Options(encoding="utf-99")
    with pytest.raises(ConfigError, match="is no encoding of lines of text"):
        Options(encoding="utf-16")


def test_the_manifest_says_where_the_data_come_from(folder: Make) -> None:
    """Format, origin, licence, and the sha256 of every file that was read."""
    source = folder({"x.json": squad(("Salt.", [asked("q", ("Salt", 0))])), "other.txt": "x"})
    target = source.parent / "data"
    import_dataset("squad", source, target, licence="CC0", origin="https://example.org/x")
    manifest = read_manifest(target)
    assert (manifest.licence, manifest.source) == ("CC0", "https://example.org/x")
    digest = hashlib.sha256((source / "x.json").read_bytes()).hexdigest()
    assert manifest.imported["files"] == {"x.json": digest}


def test_a_missing_source(tmp_path: Path) -> None:
    """Is named."""
    with pytest.raises(DataError, match="nowhere: no such file or folder"):
        import_dataset("beir", tmp_path / "nowhere", tmp_path / "data")
    assert list(tmp_path.iterdir()) == []
