"""HotpotQA files on a few lines."""

from typing import Any

import pytest
from evidence_text import text_of
from small_imports import Make, loaded, refused, spans

from harness.data.manifest import read_manifest


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
