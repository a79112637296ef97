"""Exact matches, which need no model: the text of an item occurs in the passages, or they cover one of its spans."""

from collections.abc import Sequence

from harness.core.records import Case, Chunk, Span
from harness.llm import Label, folded

SHORTEST = 20
"""Minimum characters of an item to be found by its text: "5 minutes" occurs in many unrelated passages."""


def exact_label(
    case: Case, at: int, item: str, k: int | None, overlap: float, *, of_evidence: bool = True
) -> Label | None:
    """The label "full" if the text of an item occurs in a passage or a span of it is covered; None otherwise.

    `at` is the index of the item. A span is covered if the first `k` passages hold at least the fraction `overlap` of
    its characters. Only items `of_evidence` have spans.
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
    """The end offset of the first occurrence of `words` as whole words, searching from `start`; 0 if there is none."""
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
    """The number of characters of a span that the passages cover together, each counted once."""
    reached, total = place.start, 0
    for passage in sorted(passages, key=lambda passage: passage.start):
        if passage.doc == place.doc:
            start, end = max(passage.start, reached), min(passage.end, place.end)
            if end > start:
                total, reached = total + end - start, end
    return total
