"""Neighbours as one passage."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.component import Positive, Selector
from harness.model import Chunk, Hit, Outcome, Query, spanning


@dataclass(frozen=True)
class MergeAdjacent(Selector):
    """Join hits of one document that overlap, touch, or have nothing but white space between them into one passage.

    It takes the place and the score of its best part, and the distinct contexts of all. Nothing is joined to more than
    `size` tokens, where that is set.
    """

    size: Positive | None = None

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        by_document: dict[str, list[int]] = {}
        for at, hit in enumerate(hits):
            by_document.setdefault(hit.chunk.doc, []).append(at)
        joined: list[tuple[int, Hit]] = []
        for members in by_document.values():
            for group in self._groups(hits, members):
                merged = spanning([hits[at].chunk for at in group]) if len(group) > 1 else hits[group[0]].chunk
                joined.append((min(group), Hit(merged, max(hits[at].score for at in group))))
        return Outcome([hit for _, hit in sorted(joined, key=lambda pair: pair[0])], [])

    def _groups(self, hits: Sequence[Hit], members: Sequence[int]) -> list[list[int]]:
        """The members by groups that become one passage, each in the order of the text."""
        groups: list[list[int]] = []
        end = -1
        for at in sorted(members, key=lambda at: (hits[at].chunk.start, hits[at].chunk.end)):
            chunk = hits[at].chunk
            # What lies inside a passage already makes it no larger.
            if groups and (chunk.end <= end or (_touches(chunk, end) and self._fits(hits, [*groups[-1], at]))):
                groups[-1].append(at)
                end = max(end, chunk.end)
            else:
                groups.append([at])
                end = chunk.end
        return groups

    def _fits(self, hits: Sequence[Hit], group: Sequence[int]) -> bool:
        return self.size is None or spanning([hits[at].chunk for at in group]).tokens <= self.size


def _touches(chunk: Chunk, end: int) -> bool:
    """Whether a chunk begins before `end`, or after nothing but white space."""
    return chunk.start <= end or (chunk.document is not None and chunk.document.text[end : chunk.start].isspace())
