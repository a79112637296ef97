"""What needs no judge: an item whose words, or whose place, are in the passages."""

from collections.abc import Sequence

from harness.llm import Label, folded
from harness.model import Case, Chunk, Span


def exact_label(
    case: Case, at: int, item: str, k: int | None, overlap: float, *, of_evidence: bool = True
) -> Label | None:
    """The label of an item that is plainly there, by its text or by one of its places; None where it is not plain.

    `at` is the item's number; only an item `of_evidence` has places.
    """
    passages = case.passages[:k]
    wanted = folded(item)
    for rank, passage in enumerate(passages, 1):
        if wanted and wanted in folded(passage.text):
            return Label(2, f"occurs in passage {rank}", item, "exact")
    if of_evidence:
        for place in case.query.evidence[at].places:
            if covered(passages, place) >= overlap * (place.end - place.start):
                return Label(2, f"{place.doc}:{place.start}-{place.end} is covered", "", "exact")
    return None


def covered(passages: Sequence[Chunk], place: Span) -> int:
    """Characters of a place that the passages hold together."""
    reached, held = place.start, 0
    for passage in sorted(passages, key=lambda passage: passage.start):
        if passage.doc == place.doc:
            start, end = max(passage.start, reached), min(passage.end, place.end)
            if end > start:
                held, reached = held + end - start, end
    return held
