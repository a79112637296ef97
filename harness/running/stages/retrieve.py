"""The retrieve stage: rank the chunks of a corpus for all queries, and time single ones."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from harness.components.component import identity
from harness.components.roles import BaseRetriever, Embedder, SearchInputs
from harness.core.blame import blamed
from harness.core.rankings import Rankings, Row, best_first, unit_rows
from harness.core.records import Floats, Ints, Query, Vectors
from harness.core.timing import TIMED_QUERIES, milliseconds
from harness.running.stages.contextualize import Contextualize, EmbedCorpus
from harness.running.stages.index import Index, corpus_vectors, embedded_corpus
from harness.running.stages.passages import Passages
from harness.running.stages.ranking_checks import check_rankings, overlap, read_rankings
from harness.running.stages.stage import PartStage, Stage, StoredStage
from harness.running.stages.workspace import Workspace
from harness.storage.store import Artifact, Key

_LARGE = 64
"""Parts of a corpus above which approximate search is compared with exact search on a sample of the queries."""

_SAMPLE = 100
"""Queries of that sample, about."""


@dataclass(frozen=True, eq=False)
class Retrieve(StoredStage):
    """Ranks the chunks for all queries.

    `embedder` is None unless the retriever or one of its parts uses vectors. `queries` is the SHA-256 of the query set,
    `run` that of the recorded run that the retriever reads, if it reads one. `sample` limits the queries.
    """

    corpus: Contextualize
    retriever: BaseRetriever
    embedder: Embedder | None
    queries: str
    run: str | None
    sample: int | None = None

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
            **({} if self.sample is None else {"sample": self.sample}),
        }

    def numbers(self, work: Workspace) -> range:
        """Return the numbers of the queries: all, or every n-th for a sample."""
        count = len(work.queries)
        return range(0, count, -(-count // self.sample) if self.sample and count else 1)

    def asked(self, work: Workspace) -> list[Query]:
        """Return the queries."""
        return [work.queries[number] for number in self.numbers(work)]

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
        """For approximate search: the stage of the exact search that its recall is measured against.

        Unless the corpus is very large, that is the stage of a trial with the exact retriever.
        """
        exact = self.retriever.exact()
        sample = _SAMPLE if self.corpus.chunks.parts > _LARGE else None
        return None if exact is None else replace(self.of(exact), sample=sample)

    @cached_property
    def index(self) -> Index | None:
        """The stage that builds the index; None if the retriever has none."""
        index = Index(self.corpus, self.retriever, self.own_embedder, self.queries)
        return index if self.retriever.indexes else None

    @cached_property
    def searched_parts(self) -> "tuple[RetrievePart, ...]":
        """The stages that each search a part of a large corpus, if the retriever can."""
        return RetrievePart.split(self, self.corpus.chunks.parts if self.retriever.searches_parts else 1)

    @property
    def embedded(self) -> tuple[Stage, ...]:
        """The vectors of the corpus and the queries, if the retriever itself uses any."""
        return (EmbedCorpus(self.own_embedder, self.queries, self.corpus),) if self.own_embedder else ()

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The corpus, its vectors, the index, other rankings on which this one is based, as far as they are used."""
        others = (self.index, *self.parts, *self.searched_parts, self.exact)
        return (self.corpus, *self.embedded, *(stage for stage in others if stage is not None))

    def build(self, work: Workspace) -> Artifact:
        """Return the arrays of `Rankings`, and `ms`, the latency of each timed query.

        Raises ConfigError if the rankings are invalid.
        """
        if self.searched_parts:
            return self._merged(work)
        retriever, passages = self.retriever, self.corpus.passages(work)
        parts = [part.read(work) for part in self.parts]
        corpus = None
        if self.own_embedder is not None and retriever.holds_vectors:
            corpus = corpus_vectors(self.corpus, self.own_embedder, work, unit=retriever.unit_vectors)
        ignored = [] if parts else ignored_chunks(self.asked(work), passages)
        with self.index.opened(work) if self.index else nullcontext() as opened:
            given = replace(self.search_inputs(work, corpus, parts), opened=opened)
            with blamed(retriever, f"retriever {retriever.name()}"):
                ranked = ranked_without(retriever, ignored, given)
            check_rankings(retriever, ranked, len(passages), given.ids)
            ms = self.corpus.chunks.waited(work) if retriever.system else latencies(retriever, given)
        if len(ms) and parts:
            ms += sum(part.arrays["ms"] for part in parts)  # a fused query waits for all its parts
        facts = _facts_of_parts(parts, given.index) if parts else self._facts(work, ranked, given)
        return Artifact({**ranked._asdict(), "ms": ms}, facts)

    def _merged(self, work: Workspace) -> Artifact:
        """The best of what was found in each part of the corpus; a query takes as long as all parts together."""
        parts = [part.read(work) for part in self.searched_parts]
        found = [read_rankings(part) for part in parts]
        depth, rows = self.retriever.depth, []
        for query in range(len(self.numbers(work))):
            ids, scores = zip(*(ranked.row(query) for ranked in found), strict=True)
            rows.append(best_first(np.concatenate(ids), np.concatenate(scores), depth, decimals=9))
        ms = np.sum([part.arrays["ms"] for part in parts], axis=0)
        facts = {name: sum(part.data[name] for part in parts) for name in ("chunks", "index_bytes", "truncated")}
        return Artifact({**Rankings.of(rows)._asdict(), "ms": ms}, facts)

    def search_inputs(self, work: Workspace, corpus: Vectors | None, parts: Sequence[Artifact] = ()) -> SearchInputs:
        """Return what the harness provides to the retriever; `corpus` has the vectors of the chunks to search."""
        passages, embedder, asked = self.corpus.passages(work), self.own_embedder, self.asked(work)
        texts, queries = [query.text for query in asked], None
        if embedder is not None:
            queries = work.vectors.embed(embedder, texts, queries=True).vectors
            queries = unit_rows(queries) if self.retriever.unit_vectors else queries
            queries.setflags(write=False)
        recorded = self.retriever.recorded
        return SearchInputs(
            [query.id for query in asked],
            texts,
            Artifact() if self.index is None else self.index.read(work),
            passages,
            corpus,
            queries,
            [read_rankings(part) for part in parts],
            None if recorded is None else work.run_file(recorded),
            lambda: _first_chunks(work, passages),
            located=self.corpus.chunks.located(work),
        )

    def _facts(self, work: Workspace, ranked: Rankings, given: SearchInputs) -> dict[str, float]:
        """The number of chunks, the size of the index, truncated chunks, and the recall against exact search."""
        facts: dict[str, float] = {"chunks": len(given.corpus.doc), "truncated": 0}
        if self.retriever.system is None:  # nobody knows the size of the index of another system
            facts["index_bytes"] = given.index.nbytes
        facts |= self.corpus.chunks.facts(work)
        if self.retriever.database:
            built = given.index.data
            facts |= {"build_s": built["seconds"], "truncated": built["truncated"], "index_bytes": built["bytes"]}
            if built["bytes"] is None:  # nor of one in a database that does not report it
                del facts["index_bytes"]
        if given.corpus_vectors is not None and self.own_embedder is not None:
            # An approximate index contains the vectors, so they are not counted twice.
            facts["index_bytes"] += 0 if self.exact else given.corpus_vectors.nbytes
            facts["truncated"] = int(embedded_corpus(self.corpus, self.own_embedder, work).truncated.sum())
        if self.exact is not None:
            compared = Rankings.of([ranked.row(number) for number in self.exact.numbers(work)])
            facts["ann_recall"] = overlap(compared, read_rankings(self.exact.read(work)))
        return facts


@dataclass(frozen=True, eq=False)
class RetrievePart(PartStage[Retrieve]):
    """Ranks the chunks of part number `part` of `parts` of a large corpus for all queries."""

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The corpus and its vectors."""
        return (self.whole.corpus, *self.whole.embedded)

    def build(self, work: Workspace) -> Artifact:
        """Return what `Retrieve` does, for the chunks of the part; their numbers are those in the corpus.

        Only their vectors are in memory. Raises ConfigError if the rankings are invalid.
        """
        retriever, passages = self.whole.retriever, self.whole.corpus.passages(work)
        first, last = passages.part(self.part, self.parts)
        corpus, facts = None, {"chunks": last - first, "index_bytes": 0, "truncated": 0}
        if self.whole.own_embedder is not None:
            embedded = work.vectors.embed(self.whole.own_embedder, passages.texts[first:last])
            corpus = unit_rows(embedded.vectors) if retriever.unit_vectors else embedded.vectors
            corpus.setflags(write=False)
            facts |= {"index_bytes": corpus.nbytes, "truncated": int(embedded.truncated.sum())}
        given = self.whole.search_inputs(work, corpus)
        here = [row[(row >= first) & (row < last)] - first for row in ignored_chunks(self.whole.asked(work), passages)]
        with blamed(retriever, f"retriever {retriever.name()}"):
            ranked = ranked_without(retriever, here, given)
        check_rankings(retriever, ranked, last - first, given.ids)
        found = {**ranked._asdict(), "ids": ranked.ids + first}
        return Artifact({**found, "ms": latencies(retriever, given)}, facts)


def _facts_of_parts(parts: Sequence[Artifact], index: Artifact) -> dict[str, float]:
    """The facts of a fusion, from those of its parts and the size of its own index."""
    facts: dict[str, float] = {
        "chunks": parts[0].data["chunks"],
        "truncated": max(part.data["truncated"] for part in parts),
    }
    if all("index_bytes" in part.data for part in parts):
        facts["index_bytes"] = sum(part.data["index_bytes"] for part in parts) + index.nbytes
    approximate = [part.data["ann_recall"] for part in parts if "ann_recall" in part.data]
    return facts | ({"ann_recall": min(approximate)} if approximate else {})


def _first_chunks(work: Workspace, passages: Passages) -> dict[str, int]:
    """The number of the first chunk of each document, by document id."""
    starts = np.unique(passages.doc, return_index=True)
    return {work.data.documents[doc].id: at for doc, at in zip(*(part.tolist() for part in starts), strict=True)}


def latencies(retriever: BaseRetriever, given: SearchInputs) -> Floats:
    """Return the milliseconds that each timed query takes alone; empty if the retriever is not timed."""
    single = map(given.only, range(min(TIMED_QUERIES, len(given.ids)) if retriever.timed else 0))
    return np.array(milliseconds(retriever.rank, single))


def ignored_chunks(queries: Sequence[Query], passages: Passages) -> list[Ints]:
    """Return the numbers of the chunks that each query ignores."""
    chunks = passages.of_documents({doc for query in queries for doc in query.ignore})
    return [np.concatenate([np.zeros(0, np.int64), *(chunks[doc] for doc in query.ignore)]) for query in queries]


def ranked_without(retriever: BaseRetriever, ignored: Sequence[Ints], given: SearchInputs) -> Rankings:
    """Return the ranking without the chunks that a query ignores, searched deeper to make up for them."""
    most = max(map(len, ignored), default=0)
    if not most:
        return retriever.rank(given)
    deeper = cast(BaseRetriever, replace(cast(Any, retriever), depth=retriever.depth + most))
    found = deeper.rank(given)
    rows: list[Row] = []
    for at, left_out in enumerate(ignored):
        ids, scores = found.row(at)
        kept = np.flatnonzero(~np.isin(ids, left_out))[: retriever.depth]
        rows.append((ids[kept], scores[kept], found.reaches(at)[kept]))
    return Rankings.of(rows)
