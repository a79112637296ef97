"""Chunks with the highest total similarity within them."""

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
    """Pieces of up to `piece` tokens, joined into chunks so that the sum of similarities within chunks is maximal.

    The similarity of a pair of pieces is its cosine minus the mean cosine of all pairs of the document. The optimum is
    found by dynamic programming; ties are broken by the fewest cuts. A chunk has at most `size // piece` pieces, as
    published, or with `bound: tokens` as many as fit into `size` tokens. Pieces are cut like those of `recursive`, with
    the same settings. Smith & Troynikov, Evaluating Chunking Strategies for Retrieval, Chroma 2024. Vectors come from
    the trial's embedder.
    """

    size: Positive = 400
    piece: Positive = 50
    bound: Literal["pieces", "tokens"] = "pieces"
    separators: tuple[str, ...] = SENTENCES
    keep_separator: KeepSeparator = "end"

    version: ClassVar[int] = 2

    def problem(self) -> str | None:
        """An error message if a separator is empty or `piece` is more than `size`."""
        if "" in self.separators:
            return "separators must not be empty; text without a separator is cut into windows anyway"
        return f"piece {self.piece} is more than size {self.size}" if self.piece > self.size else None

    def pieces(self, doc: Document) -> Spans:
        """Return pieces of up to `piece` tokens."""
        return small_pieces(doc, self.piece, self.separators, self.keep_separator)

    def join(self, doc: Document, pieces: Spans, vectors: Vectors) -> Spans:
        """Join the pieces at the best cuts."""
        if not pieces:
            return []
        return joined(pieces, best_cuts(vectors.astype(np.float64), self._first(doc, pieces)))

    def _first(self, doc: Document, pieces: Spans) -> Ints:
        """For each piece, the first piece of the longest allowed chunk that ends with it; at worst the piece itself."""
        at = np.arange(len(pieces))
        if self.bound == "pieces":
            return np.asarray(np.maximum(at - self.size // self.piece + 1, 0))
        starts, ends = np.array(pieces).T
        tokens = doc.token_map().starts
        begins, stops = np.searchsorted(tokens, starts), np.searchsorted(tokens, ends)
        return np.asarray(np.minimum(np.searchsorted(begins, stops - self.size), at))


def best_cuts(vectors: Floats, first: Ints) -> list[int]:
    """The cuts that maximize the sum, over all pairs within chunks, of (cosine - mean cosine of all pairs).

    `vectors` have unit length, (pieces, dimensions). A chunk that ends with piece j may begin with piece first[j] to j.
    With prefix sums P of the vectors, the cosines of all pairs of a chunk sum to (|P_b - P_a|^2 - (b - a)) / 2.
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
        # Rounded, so that floating-point noise never moves a cut.
        value = np.round(best[lo:end] + within, 6)
        at = np.lexsort((np.arange(lo, end), chunks[lo:end], -value))[0]
        best[end], chunks[end], begins[end] = best[lo + at] + within[at], chunks[lo + at] + 1, lo + at
    cuts: list[int] = []
    end = n
    while end > 0:
        end = int(begins[end])
        cuts.append(end)
    return [cut for cut in reversed(cuts) if cut]
