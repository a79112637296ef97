"""The index stage: what a retriever builds of the corpus before it searches, and the vectors of the corpus."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from harness.components.component import identity
from harness.components.roles import BaseRetriever, DatabaseRetriever, Embedder
from harness.core.blame import blamed
from harness.core.memory import require_memory
from harness.core.rankings import unit_rows
from harness.core.records import Embedded, Vectors
from harness.running.stages.contextualize import Contextualize, EmbedCorpus
from harness.running.stages.database_index import RECORDS, Feed, note, place_of, record_name
from harness.running.stages.ranking_checks import checked_artifact
from harness.running.stages.stage import PartStage, Stage, StoredStage
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

    @cached_property
    def part_stages(self) -> "tuple[IndexPart, ...]":
        """The stages that each index a part of a large corpus, if the retriever can."""
        return IndexPart.split(self, self.corpus.chunks.parts if self.retriever.in_parts else 1)

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The corpus, its vectors if the retriever uses them, and the parts if there are several."""
        embedded = (EmbedCorpus(self.embedder, self.queries, self.corpus),) if self.embedder else ()
        return (self.corpus, *embedded, *self.part_stages)

    @property
    def stored_as(self) -> Sequence[tuple[str, str]]:
        """The artifact, and the record of an index in a database."""
        database = self.retriever.database
        recorded = ((RECORDS, record_name(self.address, database)),) if database else ()
        return (*super().stored_as, *recorded)

    def _in_database(self, database: DatabaseRetriever, work: Workspace) -> Artifact:
        """Have a database index the corpus; return the size of the index and how long that took."""
        begin, store = time.perf_counter(), work.store.root
        note(store, self.address, database)
        passages = self.corpus.passages(work)
        feed = Feed(passages, self.embedder, work)
        size = database.build(place_of(store, self.address), iter(feed)) if len(passages) else 0
        note(store, self.address, database, size)
        seconds = time.perf_counter() - begin
        facts = {"chunks": len(passages), "bytes": size, "seconds": seconds, "truncated": feed.truncated}
        return Artifact(data=facts)

    @contextmanager
    def opened(self, work: Workspace) -> Iterator[Any]:
        """Open the index in a database for searching, and build it again if it is gone; None without a database."""
        database, built = self.retriever.database, self.read(work)
        if database is None or not built.data["chunks"]:
            yield None
            return
        place = place_of(work.store.root, self.address)
        if not database.is_built(place, built.data["chunks"]):
            self._in_database(database, work)
        with database.opened(place) as opened:
            yield opened

    def build(self, work: Workspace) -> Artifact:
        """Return what the retriever's `index` returns. Raises ConfigError if it cannot be stored."""
        where = f"retriever {self.retriever.name()}: index"
        if self.retriever.database:
            return self._in_database(self.retriever.database, work)
        if self.part_stages and self.retriever.in_parts:
            with blamed(self.retriever, where):
                joined = self.retriever.in_parts.joined([part.read(work) for part in self.part_stages])
            return checked_artifact(where, joined)
        texts = self.corpus.passages(work).texts
        vectors = None
        if self.embedder is not None:
            vectors = corpus_vectors(self.corpus, self.embedder, work, unit=self.retriever.unit_vectors)
        with blamed(self.retriever, where, texts):
            return checked_artifact(where, self.retriever.index(texts, vectors))


@dataclass(frozen=True, eq=False)
class IndexPart(PartStage[Index]):
    """Indexes part number `part` of `parts` of a large corpus."""

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The corpus."""
        return (self.whole.corpus,)

    def build(self, work: Workspace) -> Artifact:
        """Return what the retriever's `index_part` returns. Raises ConfigError if it cannot be stored."""
        retriever, passages = self.whole.retriever, self.whole.corpus.passages(work)
        where = f"retriever {retriever.name()}: index_part"
        first, last = passages.part(self.part, self.parts)
        texts = passages.texts[first:last]
        assert retriever.in_parts is not None
        with blamed(retriever, where, texts):
            return checked_artifact(where, retriever.in_parts.index_part(texts))


def embedded_corpus(corpus: Contextualize, embedder: Embedder, work: Workspace) -> Embedded:
    """Return the vectors of a corpus, which must not be changed, and which of its chunks were truncated."""

    def read() -> Embedded:
        embedded = work.vectors.embed(embedder, corpus.passages(work).texts)
        embedded.vectors.setflags(write=False)
        return embedded

    address = digest([corpus.address, identity(embedder)])
    return work.kept("vectors", address, read, limit=1)


def corpus_vectors(corpus: Contextualize, embedder: Embedder, work: Workspace, *, unit: bool) -> Vectors:
    """Return the vectors of a corpus, (chunks, dimensions), scaled to unit length if asked.

    Raises ConfigError if this machine's memory is too small for them.
    """
    chunks, dimensions = len(corpus.passages(work)), work.vectors.size(embedder)[1]
    # Twice: as they are stored, and scaled.
    require_memory(
        f"the retriever holds the vectors of all {chunks:,} chunks",
        2 * 4 * chunks * dimensions,
        "use `dense` with `ann: flat`, which goes through them part by part, `lancedb` or `milvus`",
    )
    vectors = embedded_corpus(corpus, embedder, work).vectors
    if unit:
        vectors = unit_rows(vectors)
        vectors.setflags(write=False)
    return vectors
