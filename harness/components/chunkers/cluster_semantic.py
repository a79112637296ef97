"""The chunks whose parts are most alike, taken together."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from harness.components.chunkers.gaps import joined
from harness.components.chunkers.recursive import SENTENCES, KeepSeparator, small_pieces
from harness.components.component import Positive
from harness.components.roles import EmbeddingChunker
from harness.core.records import Document, Floats, Ints, Spans, Vectors


@dataclass(frozen=True)
class ClusterSemantic(EmbeddingChunker):
    """Pieces of up to `piece` tokens, joined into chunks so that the sum of similarities within chunks is the greatest
    there is.

    A pair of pieces counts its cosine less the mean cosine of all pairs of the document. Found by dynamic programming;
    of equally good ways the one with the fewest cuts. A chunk holds at most `size // piece` pieces, as published, or
    with `bound: tokens` as many as fit into `size` tokens. Pieces are cut as `recursive` cuts, by the same settings.
    Smith & Troynikov, Evaluating Chunking Strategies for Retrieval, Chroma 2024. Vectors are from the trial's embedder.
    """

    size: Positive = 400
    piece: Positive = 50
    bound: Literal["pieces", "tokens"] = "pieces"
    separators: tuple[str, ...] = SENTENCES
    keep_separator: KeepSeparator = "end"

    version: ClassVar[int] = 2

    def problem(self) -> str | None:
        if "" in self.separators:
            return "separators must not be empty; windows are cut where no separator occurs"
        return f"piece {self.piece} is more than size {self.size}" if self.piece > self.size else None

    def pieces(self, doc: Document) -> Spans:
        return small_pieces(doc, self.piece, self.separators, self.keep_separator)

    def join(self, doc: Document, pieces: Spans, vectors: Vectors) -> Spans:
        if not pieces:
            return []
        return joined(pieces, best_cuts(vectors.astype(np.float64), self._first(doc, pieces)))

    def _first(self, doc: Document, pieces: Spans) -> Ints:
        """The first piece with which a chunk may begin that ends with each piece; a piece alone is always a chunk."""
        at = np.arange(len(pieces))
        if self.bound == "pieces":
            return np.asarray(np.maximum(at - self.size // self.piece + 1, 0))
        starts, ends = np.array(pieces).T
        tokens = doc.token_map().starts
        begins, stops = np.searchsorted(tokens, starts), np.searchsorted(tokens, ends)
        return np.asarray(np.minimum(np.searchsorted(begins, stops - self.size), at))


def best_cuts(vectors: Floats, first: Ints) -> list[int]:
    """Where to cut so that the sum over all pairs within chunks of (cosine - mean cosine of all pairs) is greatest.

    `vectors` are of unit length, (pieces, dimensions). A chunk that ends with piece j may begin with any of first[j] to
    j. With prefix sums P of the vectors, the cosines of all pairs of a chunk sum to (|P_b - P_a|^2 - (b - a)) / 2.
    """
    n = len(vectors)
    sums = np.vstack([np.zeros(vectors.shape[1]), np.cumsum(vectors, axis=0)])
    own = np.concatenate([[0.0], np.cumsum((vectors**2).sum(axis=1))])
    pairs = n * (n - 1) / 2
    mean = ((sums[n] @ sums[n]) - own[n]) / 2 / pairs if pairs else 0.0
    best = np.zeros(n + 1)
    chunks = np.zeros(n + 1, np.int64)
    begins = np.zeros(n + 1, np.int64)
    for end in range(1, n + 1):
        lo = int(first[end - 1])
        difference = sums[end] - sums[lo:end]
        width = end - np.arange(lo, end)
        within = ((difference**2).sum(axis=1) - (own[end] - own[lo:end])) / 2 - mean * width * (width - 1) / 2
        # To six decimals, so that noise in the last bits never moves a cut.
        value = np.round(best[lo:end] + within, 6)
        at = np.lexsort((np.arange(lo, end), chunks[lo:end], -value))[0]
        best[end], chunks[end], begins[end] = best[lo + at] + within[at], chunks[lo + at] + 1, lo + at
    cuts: list[int] = []
    end = n
    while end > 0:
        end = int(begins[end])
        cuts.append(end)
    return [cut for cut in reversed(cuts) if cut]
