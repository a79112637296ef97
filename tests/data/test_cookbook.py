"""The shipped sample data is as the README describes it."""

from collections import Counter
from pathlib import Path

import pytest

from harness.data.dataset import load_dataset

ROOT = Path(__file__).parents[2] / "datasets" / "cookbook"


@pytest.mark.parametrize(("queries", "min_value"), [("validation", 80), ("test", 40)])
def test_sizes_and_types(queries: str, min_value: int) -> None:
    """At least 40 documents and 25,000 words; every type of query in both sets."""
    data = load_dataset(ROOT, queries, final=True)
    words = [len(doc.text.split()) for doc in data.documents]
    assert len(words) >= 40
    assert sum(words) >= 25_000
    assert min(words) <= 250
    assert max(words) >= 2_000
    assert len(data.query_set.queries) >= min_value
    types = Counter(query.metadata["type"] for query in data.query_set.queries)
    assert set(types) == {"single_fact", "multi_evidence", "paraphrase", "number", "no_answer"}
    for query in data.query_set.queries:
        assert bool(query.answer) == bool(query.evidence) == (query.metadata["type"] != "no_answer")
        if query.metadata["type"] == "multi_evidence":
            assert len(query.evidence) >= 2


def test_metadata() -> None:
    """Dates, source types and categories, for selectors that use them."""
    for doc in load_dataset(ROOT, "validation").documents:
        assert set(doc.metadata) == {"date", "source_type", "category"}
        assert doc.metadata["source_type"] in ("official", "contributor", "reader")
