"""Which passages of a ranking find which evidence items: the matching that all measures are based on."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from harness.core.records import Evidence, Query, TokenMap
from harness.evaluation.metrics.intervals import Interval, common, overlap, size, union


class Passage(NamedTuple):
    """A retrieved span: document, character offsets, tokens of its text, tokens of the context shown before it.

    Of a selection, it also has its score, and if it was dropped, the label of the selector step and the reason.
    """

    doc: str
    start: int
    end: int
    tokens: int = 0
    context_tokens: int = 0
    score: float = 0.0
    step: str = ""
    reason: str = ""


class Items(NamedTuple):
    """The evidence items of one query, and the `coverage`: the fraction of a place that must be covered to be found.

    `slight` evidence has a grade below the relevance threshold; it only adds to graded gain. Documents that were judged
    `irrelevant`, or were pooled but left `unjudged`, affect only the measures for incomplete judgments.
    """

    evidence: tuple[Evidence, ...]
    coverage: float
    by_document: bool
    slight: tuple[Evidence, ...] = ()
    irrelevant: frozenset[str] = frozenset()
    unjudged: frozenset[str] = frozenset()

    @classmethod
    def of(cls, query: Query, coverage: float = 0.5, relevant_from: float = 0.0) -> "Items":
        """The items of a query; evidence with a grade of at least `relevant_from` is relevant (trec_eval's `-l`)."""
        relevant = tuple(item for item in query.evidence if item.grade >= relevant_from)
        slight = tuple(item for item in query.evidence if item.grade < relevant_from)
        judged = frozenset(query.irrelevant), frozenset(query.unjudged)
        return cls(relevant, coverage, query.by_document or any(judged), slight, *judged)


class Ranking:
    """The passages retrieved for one query, in rank order, matched with its evidence items.

    With document-level evidence this is a ranking of distinct documents, each at the rank of its best chunk, so that
    every measure equals trec_eval's. Ranks count from 1.

    `near` has `(rank, passage)` for passages in documents with evidence; `found` has for each evidence item the rank at
    which it is found, or None; `gains` has `(rank, grade)` of the items found, including slight ones.
    """

    def __init__(self, passages: Sequence[Passage], items: Items) -> None:
        self.items = items
        self.passages = _distinct_documents(passages) if items.by_document else list(passages)
        graded = (*items.evidence, *items.slight)
        docs = {place.doc for item in graded for place in item.places}
        # Only passages in documents with evidence can match; most passages are in other documents.
        self.near = [(rank, passage) for rank, passage in enumerate(self.passages, 1) if passage.doc in docs]
        self._first: dict[str, int] = {}
        for rank, passage in self.near:
            self._first.setdefault(passage.doc, rank)
        self.found = [self._find(item) for item in items.evidence]
        ranks = [*self.found, *map(self._find, items.slight)]
        self.gains = [(rank, item.grade) for rank, item in zip(ranks, graded, strict=True) if rank is not None]

    def within(self, tokens: int, maps: Mapping[str, TokenMap], raw: Sequence[Passage]) -> "Ranking":
        """This ranking cut to a token budget: entire passages while they fit, then one cut to the remaining tokens.

        This is the budget of a metric such as `recall@1000t`; selectors have their own, see `fitted`. `raw` is the
        ranking before documents are made distinct, because every chunk shown uses up the budget.
        """
        kept: list[Passage] = []
        for passage in raw:
            room = tokens - passage.context_tokens
            if room <= 0:
                break
            if passage.tokens <= room:
                kept.append(passage)
                tokens = room - passage.tokens
                continue
            cut = maps[passage.doc].end_of(passage.start, room)
            end = passage.end if cut is None else min(cut, passage.end)
            if end > passage.start:
                kept.append(passage._replace(end=end, tokens=room))
            break
        return Ranking(kept, self.items)

    def _find(self, item: Evidence) -> int | None:
        """The lowest rank at which an item is found at one of its places; None if it is not found."""
        ranks = (self._place_rank(place, item) for place in item.places)
        return min((rank for rank in ranks if rank is not None), default=None)

    def _place_rank(self, place: tuple[str, int, int], item: Evidence) -> int | None:
        doc, start, end = place
        if item.whole:
            return self._first.get(doc)
        needed = self.items.coverage * (end - start)
        covered: list[Interval] = []
        for rank, passage in self.near:
            part = (max(passage.start, start), min(passage.end, end))
            if passage.doc == doc and part[0] < part[1]:
                covered = union([*covered, part])
                if size(covered) >= needed:
                    return rank
        return None

    @cached_property
    def relevant(self) -> set[int]:
        """The ranks of the relevant passages (see `is_relevant`)."""
        return {rank for rank, passage in self.near if self.is_relevant(passage)}

    def is_relevant(self, passage: Passage) -> bool:
        """Whether a passage overlaps a place by at least half of the shorter of both, or its document is evidence."""
        for item in self.items.evidence:
            for doc, start, end in item.places:
                if doc != passage.doc:
                    continue
                if item.whole:
                    return True
                shared = min(passage.end, end) - max(passage.start, start)
                shorter = min(passage.end - passage.start, end - start)
                if shared > 0 and 2 * shared >= shorter:
                    return True
        return False

    def characters(self, k: int | None) -> tuple[int, int, int]:
        """Character counts `(shared, gold, retrieved)` of the top k, each the size of a union of spans.

        The gold span of an item is the place that the top k covers best (the first of tied places), so a verbatim copy
        is as good as the original, and a second copy is redundant.
        """
        retrieved: dict[str, list[Interval]] = {}
        for passage in self.passages[:k]:
            retrieved.setdefault(passage.doc, []).append((passage.start, passage.end))
        merged = {doc: union(parts) for doc, parts in retrieved.items()}
        gold: dict[str, list[Interval]] = {}
        for item in self.items.evidence:
            best = max(
                item.places, key=lambda p: overlap((p.start, p.end), merged.get(p.doc, [])) / max(1, p.end - p.start)
            )
            gold.setdefault(best.doc, []).append((best.start, best.end))
        needed = {doc: union(parts) for doc, parts in gold.items()}
        shared = sum(common(parts, merged.get(doc, [])) for doc, parts in needed.items())
        return shared, sum(map(size, needed.values())), sum(map(size, merged.values()))


def _distinct_documents(passages: Sequence[Passage]) -> list[Passage]:
    best: dict[str, Passage] = {}
    for passage in passages:
        best.setdefault(passage.doc, passage)
    return list(best.values())
