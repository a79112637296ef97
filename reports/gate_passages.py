"""The passages that were selected for a query when the baseline was accepted, and today: for a query that got worse."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.core.records import Query
from harness.data.dataset import Dataset

_MOST = 10
"""Passages kept of a selection."""


@dataclass(frozen=True)
class SelectedPassage:
    """A passage: its place in the document, its text, and where evidence is in the text, in characters."""

    doc: str
    start: int
    end: int
    text: str
    evidence: Sequence[tuple[int, int]]


def selected_passages(data: Dataset, query: Query, places: Sequence[tuple[str, int, int]]) -> list[SelectedPassage]:
    """Return the first passages of a selection, given as documents with offsets in characters."""
    return [
        SelectedPassage(doc, start, end, data.by_id[doc].text[start:end], _evidence(query, doc, start, end))
        for doc, start, end in places[:_MOST]
    ]


def _evidence(query: Query, doc: str, start: int, end: int) -> list[tuple[int, int]]:
    found = [place for item in query.evidence for place in item.places if place.doc == doc]
    cuts = [(max(place.start, start) - start, min(place.end, end) - start) for place in found]
    apart: list[tuple[int, int]] = []
    for low, high in sorted((low, high) for low, high in cuts if low < high):
        low = max(low, apart[-1][1] if apart else 0)
        if low < high:
            apart.append((low, high))
    return apart
