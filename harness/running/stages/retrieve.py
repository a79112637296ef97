"""The index and retrieve stages: rank the chunks of a corpus for all queries, and time single ones."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from harness.components.component import identity
from harness.components.roles import BaseRetriever, Embedder, SearchInputs
from harness.core.blame import blamed
from harness.core.rankings import Rankings, Row, unit_rows
from harness.core.records import Embedded, Query, Vectors
from harness.core.timing import TIMED_QUERIES, milliseconds
from harness.running.stages.contextualize import Contextualize, EmbedCorpus
from harness.running.stages.passages import Passages
from harness.running.stages.ranking_checks import check_rankings, checked_artifact, overlap, read_rankings
from harness.running.stages.stage import Stage, StoredStage
from harness.running.stages.workspace import Workspace
from harness.storage.digest import digest
from harness.storage.store import Artifact, Key


@dataclass(frozen=True, eq=False)
class Index(StoredStage):
    """Builds what a retriever needs besides vectors. `embedder` is None unless the retriever uses vectors."""

    corpus: Contextualize
    retriever: BaseRetriever
    embedder: Embedder | None
    queries: str

    @cached_property
    def key(self) -> Key:
        """The corpus and the settings that decide the index."""
        known = {**identity(self.retriever), "settings": self.retriever.index_settings()}
        embedder = {"embedder": identity(self.embedder)} if self.embedder else {}
        return {"stage": "index", "passages": self.corpus.address, "retriever": known, **embedder}

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The corpus, and its vectors if the retriever uses them."""
        embedded = (EmbedCorpus(self.corpus, self.embedder, self.queries),) if self.embedder else ()
        return (self.corpus, *embedded)

    def build(self, work: Workspace) -> Artifact:
        """Return what the retriever's `index` returns. Raises ConfigError if it cannot be stored."""
        where = f"retriever {self.retriever.name()}: index"
        texts = list(self.corpus.passages(work).texts)
        vectors = None
        if self.embedder is not None:
            vectors = corpus_vectors(self.corpus, self.embedder, work, unit=self.retriever.unit_vectors)
        with blamed(self.retriever, where, texts):
            return checked_artifact(where, self.retriever.index(texts, vectors))


@dataclass(frozen=True, eq=False)
class Retrieve(StoredStage):
    """Ranks the chunks for all queries.

    `embedder` is None unless the retriever or one of its parts uses vectors. `queries` is the SHA-256 of the query set,
    `run` that of the recorded run that the retriever reads, if it reads one.
    """

    corpus: Contextualize
    retriever: BaseRetriever
    embedder: Embedder | None
    queries: str
    run: str | None

    @cached_property
    def key(self) -> Key:
        """The corpus, the queries and the retriever."""
        return {
            "stage": "retrieve",
            "passages": self.corpus.address,
            "queries": self.queries,
            "embedder": identity(self.embedder) if self.embedder else None,
            "retriever": identity(self.retriever),
            **({} if self.run is None else {"run": self.run}),
        }

    @property
    def own_embedder(self) -> Embedder | None:
        """The embedder if the retriever itself uses vectors, not only its parts."""
        return self.embedder if self.retriever.uses_vectors else None

    def of(self, retriever: BaseRetriever) -> "Retrieve":
        """Return the stage of another retriever on the same corpus and queries."""
        uses_vectors = any(part.uses_vectors for part in (retriever, *retriever.parts))
        return Retrieve(self.corpus, retriever, self.embedder if uses_vectors else None, self.queries, None)

    @cached_property
    def parts(self) -> "tuple[Retrieve, ...]":
        """The stages of the retrievers that a fusion merges."""
        return tuple(self.of(part) for part in self.retriever.parts)

    @cached_property
    def exact(self) -> "Retrieve | None":
        """For approximate search: the stage of the exact search that its recall is measured against."""
        exact = self.retriever.exact()
        return None if exact is None else self.of(exact)

    @cached_property
    def index(self) -> Index | None:
        """The stage that builds the index; None if the retriever has none."""
        index = Index(self.corpus, self.retriever, self.own_embedder, self.queries)
        return index if self.retriever.indexes else None

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The corpus, its vectors, the index, the parts' rankings and the exact ranking, as far as they are used."""
        embedded = (EmbedCorpus(self.corpus, self.own_embedder, self.queries),) if self.own_embedder else ()
        others = (self.index, *self.parts, self.exact)
        return (self.corpus, *embedded, *(stage for stage in others if stage is not None))

    def build(self, work: Workspace) -> Artifact:
        """Return the arrays of `Rankings`, and `ms`, the latency of each timed query.

        Raises ConfigError if the rankings are invalid.
        """
        retriever, queries, passages = self.retriever, work.queries, self.corpus.passages(work)
        parts = [part.read(work) for part in self.parts]
        given = self._inputs(work, parts)
        with blamed(retriever, f"retriever {retriever.name()}"):
            ranked = retriever.rank(given) if parts else _without_ignored(retriever, queries, passages, given)
        check_rankings(retriever, ranked, len(passages), [query.id for query in queries])
        ms = np.zeros(0)
        if retriever.timed:
            single = map(given.only, range(min(TIMED_QUERIES, len(queries))))
            # A fused query waits for all its parts.
            ms = np.array(milliseconds(retriever.rank, single)) + sum(part.arrays["ms"] for part in parts)
        facts = _facts_of_parts(parts, given.index) if parts else self._facts(work, ranked, given)
        return Artifact({**ranked._asdict(), "ms": ms}, facts)

    def _inputs(self, work: Workspace, parts: Sequence[Artifact]) -> SearchInputs:
        passages, embedder = self.corpus.passages(work), self.own_embedder
        corpus = queries = None
        if embedder is not None:
            corpus = corpus_vectors(self.corpus, embedder, work, unit=self.retriever.unit_vectors)
            queries = work.vectors.embed(embedder, work.query_texts, queries=True).vectors
            queries = unit_rows(queries) if self.retriever.unit_vectors else queries
            queries.setflags(write=False)
        recorded = self.retriever.recorded
        return SearchInputs(
            [query.id for query in work.queries],
            work.query_texts,
            Artifact() if self.index is None else self.index.read(work),
            passages,
            corpus,
            queries,
            [read_rankings(part) for part in parts],
            None if recorded is None else work.run_file(recorded),
            lambda: _first_chunks(work, passages),
        )

    def _facts(self, work: Workspace, ranked: Rankings, given: SearchInputs) -> dict[str, float]:
        """The number of chunks, the size of the index, truncated chunks, and the recall of an approximate search."""
        facts: dict[str, float] = {"chunks": len(given.corpus.doc), "index_bytes": given.index.nbytes, "truncated": 0}
        if given.corpus_vectors is not None and self.own_embedder is not None:
            # An approximate index contains the vectors, so they are not counted twice.
            facts["index_bytes"] += 0 if self.exact else given.corpus_vectors.nbytes
            facts["truncated"] = int(embedded_corpus(self.corpus, self.own_embedder, work).truncated.sum())
        if self.exact is not None:
            facts["ann_recall"] = overlap(ranked, read_rankings(self.exact.read(work)))
        return facts


def _facts_of_parts(parts: Sequence[Artifact], index: Artifact) -> dict[str, float]:
    """The facts of a fusion, from those of its parts and the size of its own index."""
    facts: dict[str, float] = {
        "chunks": parts[0].data["chunks"],
        "index_bytes": sum(part.data["index_bytes"] for part in parts) + index.nbytes,
        "truncated": max(part.data["truncated"] for part in parts),
    }
    approximate = [part.data["ann_recall"] for part in parts if "ann_recall" in part.data]
    return facts | ({"ann_recall": min(approximate)} if approximate else {})


def _first_chunks(work: Workspace, passages: Passages) -> dict[str, int]:
    """The number of the first chunk of each document, by document id."""
    starts = np.unique(passages.doc, return_index=True)
    return {work.data.documents[doc].id: at for doc, at in zip(*(part.tolist() for part in starts), strict=True)}


def _without_ignored(
    retriever: BaseRetriever, queries: Sequence[Query], passages: Passages, given: SearchInputs
) -> Rankings:
    """The ranking without the documents that a query ignores, searched deeper to make up for them."""
    ignored = [query.ignore for query in queries]
    if not any(ignored):
        return retriever.rank(given)
    chunks = passages.of_documents({doc for row in ignored for doc in row})
    gone = [np.concatenate([np.zeros(0, np.int64), *(chunks[doc] for doc in row)]) for row in ignored]
    deeper = cast(BaseRetriever, replace(cast(Any, retriever), depth=retriever.depth + max(map(len, gone))))
    found = deeper.rank(given)
    rows: list[Row] = []
    for at, left_out in enumerate(gone):
        ids, scores = found.row(at)
        kept = np.flatnonzero(~np.isin(ids, left_out))[: retriever.depth]
        rows.append((ids[kept], scores[kept], found.reaches(at)[kept]))
    return Rankings.of(rows)


def embedded_corpus(corpus: Contextualize, embedder: Embedder, work: Workspace) -> Embedded:
    """Return the vectors of a corpus, which must not be changed, and which of its chunks were truncated."""

    def read() -> Embedded:
        embedded = work.vectors.embed(embedder, corpus.passages(work).texts)
        embedded.vectors.setflags(write=False)
        return embedded

    address = digest([corpus.address, identity(embedder)])
    return work.kept("vectors", address, read, limit=1)


def corpus_vectors(corpus: Contextualize, embedder: Embedder, work: Workspace, *, unit: bool) -> Vectors:
    """Return the vectors of a corpus, (chunks, dimensions), scaled to unit length if asked."""
    vectors = embedded_corpus(corpus, embedder, work).vectors
    if unit:
        vectors = unit_rows(vectors)
        vectors.setflags(write=False)
    return vectors
