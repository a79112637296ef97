"""Neighbouring hits merged into one passage."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.components.component import Positive
from harness.components.roles import Selector
from harness.core.records import Chunk, Drop, Hit, Outcome, Query, spanning


@dataclass(frozen=True)
class MergeAdjacent(Selector):
    """Join hits of one document that overlap, touch, or have only white space between them into one passage.

    The passage gets the rank and the score of its best part, and the distinct contexts of all parts. If `size` is set,
    no passage is joined beyond `size` tokens; a hit inside a passage whose context does not fit is dropped.
    """

    size: Positive | None = None

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """Merge neighbouring hits; the passages are in the order of their best parts."""
        by_document: dict[str, list[int]] = {}
        for at, hit in enumerate(hits):
            by_document.setdefault(hit.chunk.doc, []).append(at)
        joined: list[tuple[int, Hit]] = []
        dropped: list[Drop] = []
        for members in by_document.values():
            groups, inside = self._groups(hits, members)
            dropped += inside
            for group in groups:
                merged = spanning([hits[at].chunk for at in group]) if len(group) > 1 else hits[group[0]].chunk
                joined.append((min(group), Hit(merged, max(hits[at].score for at in group))))
        return Outcome([hit for _, hit in sorted(joined, key=lambda pair: pair[0])], dropped)

    def _groups(self, hits: Sequence[Hit], members: Sequence[int]) -> tuple[list[list[int]], list[Drop]]:
        """Group the members that become one passage, each group in text order; also return the dropped members."""
        groups: list[list[int]] = []
        dropped: list[Drop] = []
        end = -1
        for at in sorted(members, key=lambda at: (hits[at].chunk.start, -hits[at].chunk.end)):
            chunk = hits[at].chunk
            if groups and _touches(chunk, end) and self._fits(hits, [*groups[-1], at]):
                groups[-1].append(at)
                end = max(end, chunk.end)
            elif groups and chunk.end <= end:
                # Its text is already included; its context would make the passage too long.
                dropped.append(Drop(hits[at], f"its text is in the passage from {hits[groups[-1][0]].chunk.id} on"))
            else:
                groups.append([at])
                end = chunk.end
        return groups, dropped

    def _fits(self, hits: Sequence[Hit], group: Sequence[int]) -> bool:
        return self.size is None or spanning([hits[at].chunk for at in group]).tokens <= self.size


def _touches(chunk: Chunk, end: int) -> bool:
    """Whether a chunk begins at or before `end`, or only white space is between."""
    return chunk.start <= end or (chunk.document is not None and chunk.document.text[end : chunk.start].isspace())
