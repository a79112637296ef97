"""Which passages of a ranking find which evidence items: the one comparison all measures rest on."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from harness.core.records import Evidence, Query, TokenMap
from harness.evaluation.metrics.intervals import Interval, common, overlap, size, union


class Passage(NamedTuple):
    """A retrieved stretch of text: document, offsets, tokens of its text, tokens of the context shown before it."""

    doc: str
    start: int
    end: int
    tokens: int = 0
    context_tokens: int = 0


class Items(NamedTuple):
    """What one query needs, and the share of a place that must be covered for it to count as found.

    `slight` evidence has a grade below that which counts as relevant: it adds to graded gain alone. Documents judged
    `irrelevant`, and those put before the judges and left `unjudged`, matter to the measures of incomplete judgments.
    """

    evidence: tuple[Evidence, ...]
    coverage: float
    by_document: bool
    slight: tuple[Evidence, ...] = ()
    irrelevant: frozenset[str] = frozenset()
    unjudged: frozenset[str] = frozenset()

    @classmethod
    def of(cls, query: Query, coverage: float = 0.5, relevant_from: float = 0.0) -> "Items":
        """What a query needs, its evidence being relevant from a grade on (trec_eval's `-l`)."""
        relevant = tuple(item for item in query.evidence if item.grade >= relevant_from)
        slight = tuple(item for item in query.evidence if item.grade < relevant_from)
        judged = frozenset(query.irrelevant), frozenset(query.unjudged)
        return cls(relevant, coverage, query.by_document or any(judged), slight, *judged)


class Ranking:
    """The passages one query got, in rank order, matched against what it needs.

    For document evidence the ranking is that of distinct documents, each at the rank of its best chunk, so that every
    measure equals trec_eval's. Ranks count from 1.

    `near` holds `(rank, passage)` for passages in documents with evidence, `found` per evidence item the rank at which
    it is found or None, `gains` `(rank, grade)` of the items that are found, slight ones included.
    """

    def __init__(self, passages: Sequence[Passage], items: Items) -> None:
        self.items = items
        self.passages = _distinct_documents(passages) if items.by_document else list(passages)
        graded = (*items.evidence, *items.slight)
        docs = {place.doc for item in graded for place in item.places}
        # Only passages in documents that hold evidence can matter to a match; most are not.
        self.near = [(rank, passage) for rank, passage in enumerate(self.passages, 1) if passage.doc in docs]
        self._first: dict[str, int] = {}
        for rank, passage in self.near:
            self._first.setdefault(passage.doc, rank)
        self.found = [self._find(item) for item in items.evidence]
        ranks = [*self.found, *map(self._find, items.slight)]
        self.gains = [(rank, item.grade) for rank, item in zip(ranks, graded, strict=True) if rank is not None]

    def within(self, tokens: int, maps: Mapping[str, TokenMap], raw: Sequence[Passage]) -> "Ranking":
        """This query's ranking down to a token budget: whole passages while they fit, then one cut to what is left.

        `raw` is the ranking before documents are made distinct: every chunk shown is paid for.
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
        """The rank at which an item is found at one of its places."""
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
        """Ranks whose passage is relevant: it shares at least half of the shorter of both with some place."""
        return {rank for rank, passage in self.near if self.is_relevant(passage)}

    def is_relevant(self, passage: Passage) -> bool:
        """Whether a passage shares at least half of the shorter of both with some place, or its document is gold."""
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
        """Characters `(shared, gold, retrieved)` of the top k, each as the size of a union.

        Gold is, per item, the place the top k covers best (the first one where they tie), so that a verbatim copy is
        as good as the original and a second copy is redundant.
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
