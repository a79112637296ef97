"""SQuAD files on a few lines."""

from typing import Any

import pytest
from evidence_text import text_of
from small_imports import Make, asked, loaded, refused, spans, squad

from harness.core.errors import DataError
from harness.core.records import Span


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
    with pytest.raises(DataError, match=r"validation.jsonl:1: .*it occurs 1 characters later, at 8-13"):
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
        (squad(("x", [asked("q", ("x", 0)), asked("q", ("x", 0))])), "query 'q' already occurs in data[0]"),
        (squad(("x", [asked("q", is_impossible="no")])), "is_impossible: expected true or false, got 'no'"),
        (squad(("\ud800", [])), "half a surrogate pair"),
        ({"data": []}, "contains no document of this format"),
    ],
)
def test_squad_faults(folder: Make, content: Any, what: str) -> None:
    """File, and place in it."""
    assert what in refused("squad", folder({"x.json": content}))
