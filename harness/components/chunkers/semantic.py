"""Cuts between sentences with dissimilar vectors."""

import itertools
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from harness.components.chunkers.gaps import gap_similarities, joined, sentences
from harness.components.chunkers.packing import Length, trimmed
from harness.components.component import NotNegative, Positive
from harness.components.roles import EmbeddingChunker
from harness.core.records import Document, Floats, Spans, Vectors


@dataclass(frozen=True)
class Semantic(EmbeddingChunker):
    """Sentences, cut where the cosine of neighbours is below `threshold`, or if that is not set, where the distance
    exceeds the document's `percentile` of distances.

    No chunk has more than `size` tokens: a longer one is cut at its least similar gap until all parts fit. A chunk
    below `min_size` tokens is joined to the more similar neighbour if the result fits. Each side of a gap is the mean
    of `window` sentence vectors, from the trial's embedder. After Kamradt, 5 Levels of Text Splitting, 2023, where each
    sentence is embedded together with its neighbours.
    """

    size: Positive = 512
    min_size: NotNegative = 0
    percentile: Annotated[float, Field(ge=0, le=100)] = 95.0
    threshold: Annotated[float, Field(ge=-1, le=1)] | None = None
    window: Positive = 1
    language: str = "english"

    def problem(self) -> str | None:
        """An error message if `min_size` is more than `size`."""
        return f"min_size {self.min_size} is more than size {self.size}" if self.min_size > self.size else None

    def pieces(self, doc: Document) -> Spans:
        """Return the sentences without white space at their edges."""
        bare = (trimmed(doc.text, *piece) for piece in sentences(doc, self.language, self.size))
        return [span for span in bare if span[0] < span[1]]

    def join(self, doc: Document, pieces: Spans, vectors: Vectors) -> Spans:
        """Cut at dissimilar gaps, then split chunks over `size` and join chunks below `min_size`."""
        cosines = gap_similarities(vectors, self.window)
        length = doc.token_map().count
        groups: list[tuple[int, int]] = []
        for first, last in itertools.pairwise([0, *self._cuts(cosines), len(pieces)]):
            groups += self._fitting(pieces, first, last, cosines, length)
        return joined(pieces, [first for first, _ in self._grown(pieces, groups, cosines, length)])

    def _cuts(self, cosines: Floats) -> list[int]:
        """The numbers of the sentences that begin a new chunk."""
        if self.threshold is not None:
            apart = cosines < self.threshold
        elif len(cosines):
            # Distances, as in Kamradt. The percentile is interpolated, so the tolerance absorbs rounding errors.
            apart = 1 - cosines > np.percentile(1 - cosines, self.percentile) + 1e-9
        else:
            return []
        return [int(at) + 1 for at in np.flatnonzero(apart)]

    def _fitting(self, pieces: Spans, first: int, last: int, cosines: Floats, length: Length) -> list[tuple[int, int]]:
        """Group pieces `first` to `last` (exclusive) so that each group fits `size`."""
        groups: list[tuple[int, int]] = []
        left = [(first, last)] if first < last else []
        while left:
            a, b = left.pop()
            if b - a < 2 or length(pieces[a][0], pieces[b - 1][1]) <= self.size:
                groups.append((a, b))
                continue
            weakest = a + 1 + int(np.argmin(cosines[a : b - 1]))
            left += [(weakest, b), (a, weakest)]
        return groups

    def _grown(
        self, pieces: Spans, groups: list[tuple[int, int]], cosines: Floats, length: Length
    ) -> list[tuple[int, int]]:
        """Join each group below `min_size` to a neighbour, if the result fits `size`."""
        grown = list(groups)
        at = 0
        while at < len(grown):
            a, b = grown[at]
            if length(pieces[a][0], pieces[b - 1][1]) >= self.min_size:
                at += 1
                continue
            options = [
                (cosines[gap - 1], first)
                for first, gap in ((at - 1, a), (at, b))
                if 0 <= first < len(grown) - 1
                and length(pieces[grown[first][0]][0], pieces[grown[first + 1][1] - 1][1]) <= self.size
            ]
            if not options:
                at += 1
                continue
            _, first = max(options, key=lambda option: (option[0], -option[1]))
            grown[first : first + 2] = [(grown[first][0], grown[first + 1][1])]
            at = first
        return grown
