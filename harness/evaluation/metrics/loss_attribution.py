"""Loss attribution: for each evidence item that is missing from the selection, the first stage that lost it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from harness.evaluation.metrics.matching import Items, Passage, Ranking

FOUND, ABSENT, SPLIT, NOT_RETRIEVED, OVER_BUDGET = "found", "not_in_the_corpus", "split", "not_retrieved", "over_budget"
CAUSES = (FOUND, ABSENT, SPLIT, NOT_RETRIEVED, OVER_BUDGET)
"""Evidence outcomes; the others are `dropped:<step>`, which names the selector step that dropped the item."""

UNANSWERED, PERHAPS_UNMAPPED = "unanswered", "perhaps_unmapped"
"""What `not_retrieved` is for another system that did not answer, or returned passages that cannot be located."""


class Step(NamedTuple):
    """One selector step of one query: its label, whether it cuts to a budget, and the passages it dropped."""

    label: str
    spends_budget: bool
    dropped: Sequence[Passage]


class EvidencePath(NamedTuple):
    """The path of one query's evidence: all chunks that overlap it, the retrieved candidates, the selector steps."""

    overlapping_chunks: Sequence[Passage]
    candidates: Sequence[Passage]
    steps: Sequence[Step]


def losses(items: Items, selected: Sequence[Passage], trace: Callable[[], EvidencePath]) -> list[str]:
    """The outcome of each evidence item, in order: one of `CAUSES` or `dropped:<step>`.

    `trace` is called only if an item is missing from the `selected` passages.
    """
    final = Ranking(selected, items).found
    evidence_outcomes = [FOUND] * len(final)
    if None not in final:
        return evidence_outcomes
    overlapping_chunks, candidates, steps = trace()
    # Passages of other documents cannot contain evidence; ranks do not matter here.
    docs = {place.doc for item in items.evidence for place in item.places}
    left = [passage for passage in candidates if passage.doc in docs]
    stages: list[tuple[str, list[int | None]]] = [(NOT_RETRIEVED, Ranking(left, items).found)]
    for at, step in enumerate(steps):
        dropped = [passage for passage in step.dropped if passage.doc in docs]
        later = [*selected, *(passage for other in steps[at + 1 :] for passage in other.dropped)]
        known, spans = {passage[:3] for passage in later}, {passage[:3] for passage in left}
        gone = {passage[:3] for passage in dropped}
        # A passage that is not a candidate was merged from the candidates that begin in it, and perhaps cut.
        merged = [passage for passage in dropped if passage[:3] not in spans]
        left = [p for p in left if p[:3] not in gone and (p[:3] in known or not any(_begins_in(p, q) for q in merged))]
        if step.spends_budget:
            # A passage that was changed into part of a new passage ends where the new one ends.
            made = [passage for passage in later if passage[:3] not in spans]
            left = [p if p[:3] in known else _cut(p, made) for p in left]
        cause = OVER_BUDGET if step.spends_budget else f"dropped:{step.label}"
        stages.append((cause, Ranking(left, items).found))
    # An item that no step dropped, but that the selection lacks, was cut off by the budget.
    stages.append((OVER_BUDGET, final))
    for number, rank in enumerate(final):
        if rank is None and items.evidence[number].absent:
            evidence_outcomes[number] = ABSENT
        elif rank is None:
            unsplit = _in_one_chunk(items, number, overlapping_chunks)
            evidence_outcomes[number] = (
                next(cause for cause, found in stages if found[number] is None) if unsplit else SPLIT
            )
    return evidence_outcomes


def _in_one_chunk(items: Items, number: int, overlapping_chunks: Sequence[Passage]) -> bool:
    """Whether a single chunk finds an item."""
    item = items.evidence[number]
    docs, alone = {place.doc for place in item.places}, items._replace(evidence=(item,))
    return any(Ranking([chunk], alone).found[0] for chunk in overlapping_chunks if chunk.doc in docs)


def _begins_in(passage: Passage, other: Passage) -> bool:
    return passage.doc == other.doc and other.start <= passage.start < other.end


def _cut(passage: Passage, made: Sequence[Passage]) -> Passage:
    """The passage, cut at the end of the first of the `made` passages that it begins in."""
    container = next((other for other in made if _begins_in(passage, other)), passage)
    return passage._replace(end=min(passage.end, container.end))
