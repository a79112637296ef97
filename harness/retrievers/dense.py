"""Exact nearest neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from harness.component import Positive, Retriever
from harness.model import Rankings, Vectors, best_first
from harness.store import Artifact

_SPARE = 16
"""Neighbours asked for beyond the depth, so that rounding can settle ties at the cut."""


def _tied_at_the_cut(scores: Vectors, depth: int) -> bool:
    """Whether some query's last neighbour fetched ties with the last one wanted: then more may tie."""
    return bool((np.round(scores[:, -1].astype(float), 5) == np.round(scores[:, depth - 1].astype(float), 5)).any())


@dataclass(frozen=True)
class Dense(Retriever):
    """Exact search over embeddings (FAISS flat), by cosine or inner product, all queries in one call."""

    uses_vectors: ClassVar[bool] = True

    depth: Positive = 50
    similarity: Literal["cosine", "dot"] = "cosine"

    def search(
        self, index: Artifact, corpus: Vectors | None, texts: Sequence[str], vectors: Vectors | None
    ) -> Rankings:
        import faiss

        if corpus is None or vectors is None:
            raise TypeError("dense retrieval needs vectors")
        if not len(corpus):
            return Rankings.of([(np.empty(0, np.int64), np.empty(0)) for _ in texts])
        flat = faiss.IndexFlatIP(corpus.shape[1])
        flat.add(self._prepared(corpus))
        prepared, fetch = self._prepared(vectors), self.depth + _SPARE
        scores, ids = flat.search(prepared, min(fetch, len(corpus)))
        while fetch < len(corpus) and _tied_at_the_cut(scores, self.depth):
            fetch *= 2
            scores, ids = flat.search(prepared, min(fetch, len(corpus)))
        return Rankings.of(
            [
                best_first(row.astype(np.int64), score.astype(np.float64), self.depth)
                for row, score in zip(ids, scores, strict=True)
            ]
        )

    def _prepared(self, vectors: Vectors) -> Vectors:
        if not np.isfinite(vectors).all():
            raise ArithmeticError("an embedding holds NaN or infinity")
        if self.similarity == "dot":
            return np.ascontiguousarray(vectors)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
        return unit
