"""The statistics of `harness data show`, in numbers that can be checked here."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.data.dataset import load_dataset
from harness.data.profile import Spread, corpus_profile, query_profile

HARNESS = str(Path(sys.executable).parent / "harness")


@pytest.fixture
def root(make_data: Callable[..., Path]) -> Path:
    documents = [{"id": "a", "text": "x" * 100, "title": "A", "metadata": {"year": 1}}, {"id": "b", "text": "One two."}]
    queries = [
        {
            "id": "q1",
            "text": "What is it?",
            "evidence": [{"doc": "a", "start": 0, "end": 10}, {"doc": "a", "start": 90, "end": 100}],
            "metadata": {"type": "fact"},
        },
        {"id": "q2", "text": "Say how", "evidence": []},
        {"id": "q3", "text": "And?", "evidence": [{"doc": "b", "start": 0, "end": 8, "grade": 2}]},
    ]
    return make_data(documents, queries, [{"id": "t", "text": "Which one?", "evidence": [{"doc": "a"}]}])


def test_profiles(root: Path) -> None:
    """Counts, lengths, tenths, types."""
    data = load_dataset(root, "validation")
    corpus = corpus_profile(data.documents)
    assert (corpus.words.total, corpus.characters.max, corpus.titled, corpus.metadata) == (3, 100, 1, {"year": 1})
    found = query_profile("validation", data.query_set.queries, data.by_id)
    assert (found.queries, found.answerable, found.items, found.documents) == (3, 2, 3, 2)
    assert found.items_per_query == {1: 1, 2: 1}
    assert found.positions == (1, 0, 0, 0, 0, 1, 0, 0, 0, 1)
    assert (found.lengths.min, found.lengths.median, found.lengths.max) == (8, 10, 10)
    assert found.grades == {1.0: 2, 2.0: 1}
    assert found.types == {"fact": 1}
    assert found.question_words == {"how": 1, "other question": 1, "what": 1}


def test_spread() -> None:
    """Every number is in one bin, including zeros and equal numbers."""
    for numbers in ([0, 0, 5], [7], [3, 3, 3], [0], list(range(1000))):
        spread = Spread.of(numbers)
        assert sum(spread.counts) == spread.count == len(numbers)
        assert (spread.min, spread.max, spread.total) == (min(numbers), max(numbers), sum(numbers))
    assert Spread.of([]).counts == ()


def test_show(root: Path) -> None:
    """As a table, with the locked set marked, and as JSON."""

    def harness(*arguments: str) -> str:
        done = subprocess.run(
            [HARNESS, "data", "show", str(root), *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout

    out = harness()
    assert "validation: 3 queries, 2 with evidence, 1 without" in out
    assert "test (locked): 1 queries, 1 with evidence, 0 without" in out
    assert "evidence: 1 items (1 whole documents) in 1 documents" in out
    output = json.loads(harness("--json", "--queries", "validation"))
    assert [one["name"] for one in output["queries"]] == ["validation"]
    assert output["corpus"]["characters"]["total"] == 108
