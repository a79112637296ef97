"""The passages that were selected for a query when the baseline was accepted, and today: for a query that got worse."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.core.records import Query

_MOST = 10
"""Passages kept of a selection."""


PassageRecord = Mapping[str, Any]
"""A passage in `gate.json`: `doc`, `start`, `end`, `text`, and `evidence`, the parts of the text that are evidence."""


def selected_passages(
    text: Callable[[str, int, int], str], query: Query, places: Sequence[tuple[str, int, int]]
) -> list[PassageRecord]:
    """Return the first passages of a selection, given as documents with offsets in characters."""
    return [
        {
            "doc": doc,
            "start": start,
            "end": end,
            "text": text(doc, start, end),
            "evidence": _evidence(query, doc, start, end),
        }
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
