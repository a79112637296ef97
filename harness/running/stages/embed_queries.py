"""Embedding the queries, and how long that takes for a single one."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from harness.components.component import identity
from harness.components.roles import Embedder
from harness.core.timing import TIMED_QUERIES, milliseconds
from harness.running.stages.embed import EmbedStage
from harness.running.stages.stage import StoredStage
from harness.running.stages.tokenize import FORMAT
from harness.running.stages.workspace import Workspace
from harness.storage.digest import digest
from harness.storage.store import Artifact, Key


@dataclass(frozen=True, eq=False)
class EmbedQueries(EmbedStage):
    """Embeds the queries. `queries` is the SHA-256 of the query set."""

    turn: ClassVar[int] = 40
    model: Embedder
    queries: str

    @cached_property
    def address(self) -> str:
        """The queries and the embedder."""
        return digest([self.queries, identity(self.model)])

    @property
    def embedder(self) -> Embedder:
        """The trial's embedder."""
        return self.model

    def texts(self, work: Workspace) -> Sequence[str]:
        """Return no text."""
        return ()

    def query_texts(self, work: Workspace) -> list[str]:
        """Return the texts of the queries."""
        return work.query_texts

    @property
    def measured(self) -> StoredStage:
        """The latency of embedding a query."""
        return QueryLatency(self.model, self.queries)


@dataclass(frozen=True, eq=False)
class QueryLatency(StoredStage):
    """Measures how long it takes to embed one query."""

    embedder: Embedder
    queries: str

    @cached_property
    def key(self) -> Key:
        """The embedder and the queries."""
        return {"stage": "time", "format": FORMAT, "embedder": identity(self.embedder), "queries": self.queries}

    def build(self, work: Workspace) -> Artifact:
        """Return array `ms`: milliseconds to embed each timed query alone; empty if the embedder charges money."""
        if self.embedder.metered:
            return Artifact({"ms": np.zeros(0)})
        texts = work.query_texts[:TIMED_QUERIES]
        self.embedder.embed(texts[:1], queries=True)  # loads the model, which is not timed
        return Artifact({"ms": np.array(milliseconds(lambda text: self.embedder.embed([text], queries=True), texts))})
