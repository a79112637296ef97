"""The Chroma mode against a character-by-character reading of the report's formulas."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.records import Evidence, Span
from harness.evaluation.metrics import MEASURES, Items, Ranking
from harness.evaluation.metrics.matching import Passage

SPAN = st.builds(lambda start, length: (start, start + length), st.integers(0, 30), st.integers(1, 12))


def evaluate(name: str, gold: list[tuple[int, int]], chunks: list[tuple[int, int]]) -> float:
    items = Items(tuple(Evidence((Span("a", *span),)) for span in gold), 0.5, False)
    return MEASURES[name](Ranking([Passage("a", *chunk) for chunk in chunks], items), None)


@given(gold=st.lists(SPAN, min_size=1, max_size=4), chunks=st.lists(SPAN, max_size=6))
@settings(max_examples=300, deadline=None)
def test_formulas(gold: list[tuple[int, int]], chunks: list[tuple[int, int]]) -> None:
    """Lengths of retrieved chunks and references count with repeats, their overlap once."""
    retrieved = {at for chunk in chunks for at in range(*chunk)}
    listed = Counter(at for span in gold for at in range(*span))
    shared = len(retrieved & set(listed))
    length = sum(end - start for start, end in chunks)
    unused = sum(count for at, count in listed.items() if at not in retrieved)
    assert evaluate("chroma_recall", gold, chunks) == pytest.approx(shared / listed.total())
    assert evaluate("chroma_precision", gold, chunks) == pytest.approx(shared / length if length else 0)
    assert evaluate("chroma_iou", gold, chunks) == pytest.approx(shared / (length + unused))


def test_a_touching_chunk_lowers_precision_omega() -> None:
    """The published formula includes chunks that only touch a span; the harness's own formula does not."""
    gold = [(10, 20)]
    assert evaluate("precision_omega", gold, [(10, 20)]) == 1
    assert evaluate("chroma_precision_omega", gold, [(0, 10), (10, 20), (20, 30)]) == pytest.approx(1 / 3)
