"""What needs no judge: an item whose words, or whose place, are in the passages."""

from collections.abc import Sequence

from harness.core.records import Case, Chunk, Span
from harness.llm import Label, folded

SHORTEST = 20
"""Characters from which on an item that occurs is there: "5 minutes" stands in many a passage about something else."""


def exact_label(
    case: Case, at: int, item: str, k: int | None, overlap: float, *, of_evidence: bool = True
) -> Label | None:
    """The label of an item that is plainly there, by its text or by one of its places; None where it is not plain.

    `at` is the item's number; only an item `of_evidence` has places.
    """
    passages = case.passages[:k]
    wanted = folded(item)
    if len(wanted) >= SHORTEST:
        for rank, passage in enumerate(passages, 1):
            if occurs(wanted, folded(passage.text)):
                return Label(2, f"occurs in passage {rank}", item, "exact")
    if of_evidence:
        for place in case.query.evidence[at].places:
            if covered(passages, place) >= overlap * (place.end - place.start):
                return Label(2, f"{place.doc}:{place.start}-{place.end} is covered", "", "exact")
    return None


def occurs(words: str, text: str, start: int = 0) -> int:
    """Where words stand in a text as whole words, as the offset behind them; 0 where they do not."""
    at = text.find(words, start)
    while at >= 0:
        end = at + len(words)
        joined = (at > 0 and text[at - 1].isalnum() and words[0].isalnum()) or (
            end < len(text) and text[end].isalnum() and words[-1].isalnum()
        )
        if not joined:
            return end
        at = text.find(words, at + 1)
    return 0


def covered(passages: Sequence[Chunk], place: Span) -> int:
    """Characters of a place that the passages hold together."""
    reached, held = place.start, 0
    for passage in sorted(passages, key=lambda passage: passage.start):
        if passage.doc == place.doc:
            start, end = max(passage.start, reached), min(passage.end, place.end)
            if end > start:
                held, reached = held + end - start, end
    return held
