"""Nearest-neighbour search over embeddings, exact or approximate."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from harness.components.component import Positive
from harness.components.retrievers.index_cache import Latest
from harness.components.roles import Retriever, Scale
from harness.core.rankings import Rankings, best_first, unit_rows
from harness.core.records import Floats, Ints, Vectors
from harness.storage.store import Artifact

SPARE = 16
"""Hits fetched beyond the depth, so that ties at the cut-off can be broken after rounding."""

_TRAINING_PER_LIST = 39
"""Vectors that k-means needs for each list of an IVF index; with fewer chunks, fewer lists are made."""


_OPENED: Latest[Any] = Latest()

_SCORES = 32_000_000
"""Scores of chunks for queries that are in memory at once, where many chunks tie at the depth."""


def _products(rows: Vectors, vector: Vectors) -> Floats:
    """The inner products of rows and a vector in double precision, (rows,).

    In single precision, their last digits depend on how many threads add up the terms, which could turn the last
    decimal of a rounded score, and then the order of two hits.
    """
    return np.asarray(rows.astype(np.float64) @ vector.astype(np.float64))


@dataclass(frozen=True)
class Dense(Retriever):
    """Search over embeddings with FAISS, by cosine or inner product, all queries in one call.

    `ann: flat` is exact. `hnsw` (graph with `m` links, built with `ef_construction`, searched with `ef_search`; Malkov
    & Yashunin, 2018) and `ivf` (`lists` cells, at most one per 39 chunks, `probes` of them searched; Sivic & Zisserman,
    2003) are approximate: the fraction of the exact top hits that they find is logged as `ann_recall`. Below about a
    million chunks they save nothing.
    """

    version: ClassVar[int] = 2

    depth: Positive = 50
    similarity: Literal["cosine", "dot"] = "cosine"
    ann: Literal["flat", "hnsw", "ivf"] = "flat"
    m: Positive = 32
    ef_construction: Positive = 200
    ef_search: Positive = 100
    lists: Positive = 100
    probes: Positive = 8

    @property
    def uses_vectors(self) -> bool:
        """Always true."""
        return True

    @property
    def scale(self) -> Scale:
        """`cosine`, or `raw` for inner products."""
        return "cosine" if self.similarity == "cosine" else "raw"

    @property
    def indexes(self) -> bool:
        """Whether search is approximate; an exact one needs only the vectors."""
        return self.ann != "flat"

    @property
    def searches_parts(self) -> bool:
        """Whether search is exact."""
        return self.ann == "flat"

    def index_settings(self) -> dict[str, Any]:
        """The similarity, and the settings that the index of this kind is built with."""
        decides = {"flat": (), "hnsw": ("m", "ef_construction"), "ivf": ("lists",)}[self.ann]
        return {name: getattr(self, name) for name in ("similarity", "ann", *decides)}

    def exact(self) -> Retriever | None:
        """The same retriever with exact search; None if it is exact already."""
        return None if self.ann == "flat" else replace(self, ann="flat")

    def index(self, texts: Sequence[str], corpus: Vectors | None = None) -> Artifact:
        """Build the approximate index over `corpus`, (chunks, dimensions); empty for exact search."""
        if self.ann == "flat" or corpus is None or not len(corpus):
            return Artifact()
        import faiss

        vectors = self._prepared(corpus)
        dimensions = vectors.shape[1]
        # With several threads, the graph and the sums of k-means would depend on timing.
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)
        try:
            made: Any
            if self.ann == "hnsw":
                made = faiss.IndexHNSWFlat(dimensions, self.m, faiss.METRIC_INNER_PRODUCT)
                made.hnsw.efConstruction = self.ef_construction
            else:
                lists = max(1, min(self.lists, len(vectors) // _TRAINING_PER_LIST))
                made = faiss.index_factory(dimensions, f"IVF{lists},Flat", faiss.METRIC_INNER_PRODUCT)
                made.train(vectors)
            made.add(vectors)
        finally:
            faiss.omp_set_num_threads(threads)
        return Artifact({"faiss": faiss.serialize_index(made)})

    def search(
        self, index: Artifact, corpus: Vectors | None, texts: Sequence[str], vectors: Vectors | None
    ) -> Rankings:
        """Return the `depth` nearest chunks for each query; ties are in chunk order.

        Raises TypeError without vectors, ArithmeticError if an embedding has a value that is not finite.
        """
        if corpus is None or vectors is None:
            raise TypeError("dense retrieval needs vectors")
        if not len(corpus):
            return Rankings.of([(np.empty(0, np.int64), np.empty(0)) for _ in texts])
        prepared, fetch = self._prepared(vectors), min(self.depth + SPARE, len(corpus))
        searched = _OPENED.get((index, corpus), self, lambda: self._opened(index, corpus))
        if self.ann == "flat":
            found = self._nearest(searched, prepared, fetch)
        else:
            # An approximate index that finds fewer neighbours returns -1 for the rest.
            found = [near[near >= 0].astype(np.int64) for near in searched.search(prepared, fetch)[1]]
        scores = (_products(self._prepared(corpus[near]), vector) for near, vector in zip(found, prepared, strict=True))
        return Rankings.of([best_first(*hits, self.depth) for hits in zip(found, scores, strict=True)])

    def _nearest(self, corpus: Vectors, vectors: Vectors, fetch: int) -> list[Ints]:
        """The `fetch` nearest chunks of each query, or more: all that may tie with the one at `depth`."""
        import faiss

        scores, ids = faiss.knn(vectors, corpus, fetch, metric=faiss.METRIC_INNER_PRODUCT)
        found = [near.astype(np.int64) for near in ids]
        if fetch < len(corpus):
            cut = np.round(scores[:, self.depth - 1].astype(float), 5)
            tied = np.flatnonzero(np.round(scores[:, -1].astype(float), 5) == cut)
            for queries in np.array_split(tied, -(-len(tied) * len(corpus) // _SCORES) or 1):
                every = corpus @ vectors[queries].T
                for at, query in enumerate(queries.tolist()):
                    # More than half a unit of the last decimal, and the error of a product in single precision.
                    found[query] = np.flatnonzero(every[:, at] > cut[query] - 2e-5 - 1e-6 * abs(cut[query]))
        return found

    def _opened(self, index: Artifact, corpus: Vectors) -> Any:
        """The vectors to compare with, or the approximate index."""
        import faiss

        if self.ann == "flat":
            return self._prepared(corpus)
        opened: Any = faiss.deserialize_index(index.arrays["faiss"])
        if self.ann == "hnsw":
            opened.hnsw.efSearch = max(self.ef_search, self.depth + SPARE)
        else:
            opened.nprobe = self.probes
        return opened

    def _prepared(self, vectors: Vectors) -> Vectors:
        if not np.isfinite(vectors).all():
            raise ArithmeticError("an embedding contains NaN or infinity")
        return np.ascontiguousarray(vectors) if self.similarity == "dot" else unit_rows(vectors)
