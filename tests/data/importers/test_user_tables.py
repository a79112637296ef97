"""Tables of the user, as CSV and JSON lines."""

import json

import pytest
from small_imports import Make, loaded, refused, spans

from harness.core.records import Span
from harness.data.manifest import read_manifest


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
            "queries.csv:2: evidence.quote: 'Sugar' does not occur in document 'a'",
        ),
        ("id,question,quote\nq,x?,Sugar\n", "queries.csv:2: evidence.quote: 'Sugar' does not occur in any document"),
        ("id,question,doc,quote\nq,x?,zz,Salt\n", "queries.csv:2: no document 'zz' in the corpus"),
        ("id,question\nq,x?\nq,y?\n", "queries.csv:3: query 'q' has a different text in line 2"),
        ("id,question\nq\n", "queries.csv:2: expected 2 columns (id, question), got 1"),
        ('id,question\nq,"x\n', "queries.csv:2: unexpected end of data"),
        ("id,id\nq,x\n", "queries.csv:1: two columns have the same name"),
        ("id,words\nq,x\n", "no column for query.text; columns: id, words; name the right one with --map"),
        ("id,question,doc,start\nq,x?,a,0\n", "evidence.end: is missing"),
        ("id,question,doc,start,end\nq,x?,a,zero,4\n", "evidence.start: expected a whole number, got 'zero'"),
        (
            "id,question,start,end\nq,x?,0,4\n",
            "offsets, but no column for evidence.doc; columns: id, question, start, end",
        ),
        ("id,question,doc,quote\nq,x?,a,  \n", "evidence.quote: contains only white space"),
        ("id,question,document,quote\nq,x?,b,Salt.\n", "queries.csv:2: no document 'b' in the corpus"),
        ("id,question,doc\nq,x?,a;b\n", "queries.csv:2: no document 'a;b' in the corpus; --absent keeps such evidence"),
        (
            "id,question,doc,grade\nq,x?,a,0\nq,x?,a,1\n",
            "queries.csv:3: document 'a' is judged twice, 1 here and 0 before",
        ),
        ("id,question,doc,start,end\nq,x?,zz,0,4\n", "queries.csv:2: no document 'zz' in the corpus"),
        ("id,question,doc,end\nq,x?,a,4\n", "queries.csv:2: evidence.start: is missing, but there is an end"),
        (
            "id,question,doc,answer\nq,x?,a,one\nq,x?,a,two\n",
            "queries.csv:3: query.answer: 'two' here, but 'one' in an earlier row",
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
