"""Retrieval by PostgreSQL with pgvector: by vectors, by words, or by both."""

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs, urlsplit

import numpy as np
from pydantic import Field

from harness.components.component import Positive, runtime
from harness.components.retrievers.database_searches import DatabaseSearch, one_line, rankings, similar
from harness.components.retrievers.dense import SPARE
from harness.components.retrievers.existing_index import Found
from harness.components.retrievers.pgvector_tables import fill, fused, index_graph, index_words, matching, nearest
from harness.components.retrievers.tsvector import any_of, as_tsvector, storable, words_of
from harness.components.roles import Batch, IndexPlace
from harness.core.errors import HarnessError
from harness.core.rankings import Rankings
from harness.core.records import Floats, Ints, Vectors

_DIMENSIONS = 2000
"""The most that an HNSW index of pgvector takes."""

_GRAPHS = """
SELECT 1 FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_am ON pg_am.oid = relam
WHERE indrelid = to_regclass(%s) AND amname = 'hnsw'
"""
"""The HNSW indexes of a table."""

_WITH_WORDS, _WITH_GRAPH = ("full_text", "hybrid"), ("hnsw", "hybrid")
"""The kinds of search that use a `tsvector`, and an HNSW index."""


@dataclass(frozen=True)
class Pgvector(DatabaseSearch):
    """Search in PostgreSQL with the extension `vector` (pgvector 0.8 or newer).

    `search: flat` is exact; `hnsw` (graph with `m` links, built with `ef_construction`, searched with `ef_search`) is
    approximate: its `ann_recall` is logged, and as pgvector draws its levels at random, another build may find others.
    `full_text` ranks the chunks that have any word of the query by PostgreSQL's `ranking` with its `normalization`,
    which know nothing of rare words: this is not BM25. Words are those of the `analyzer`: `harness` are those of
    `bm25`, others are text search configurations of PostgreSQL, such as `english` or `simple`. `hybrid` adds the
    reciprocal ranks 1 / (c + rank) of a chunk among the first `depth` of `hnsw` and of `full_text`.

    `uri` is a PostgreSQL URL, such as `postgresql://me@db.example.com/search`; the password comes from PGPASSWORD or
    ~/.pgpass. Each index is a table of its own in the first schema of the search path, removed by `harness store
    prune`. `existing` is the table to search instead, which is only read; `fields` has its columns: `text`, `vector`,
    `doc`, `start`, `end`, `id`, and `words`, a `tsvector` (default: made of the text by the `analyzer`).
    """

    depth: Positive = 50
    search: Literal["flat", "hnsw", "full_text", "hybrid"] = "flat"
    similarity: Literal["cosine", "dot"] = "cosine"
    m: Annotated[int, Field(ge=2, le=100)] = 16
    ef_construction: Annotated[int, Field(ge=4, le=1000)] = 64
    ef_search: Annotated[int, Field(ge=1, le=1000)] = 100
    analyzer: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]*$")] = "harness"
    ranking: Literal["ts_rank", "ts_rank_cd"] = "ts_rank"
    normalization: Annotated[int, Field(ge=0, le=63)] = 0
    c: Annotated[float, Field(ge=0)] = 60.0
    existing: str = ""
    fields: Mapping[str, str] = field(default_factory=dict, hash=False)
    release: str = ""
    uri: str = runtime("")
    timeout: Annotated[float, Field(gt=0, le=1e6)] = runtime(600.0)

    def packages(self) -> Mapping[str, str]:
        """The client."""
        return {"psycopg": "pgvector", "pgvector": "pgvector"}

    def problem(self) -> str | None:
        """An error message if the address is none, or holds a password, or the settings do not fit together."""
        parts = urlsplit(self.uri)
        if parts.scheme not in ("postgresql", "postgres"):
            return "uri: expected a PostgreSQL URL, such as postgresql://me@db.example.com/search"
        if parts.password or {"password", "sslpassword"} & parse_qs(parts.query).keys():
            return "uri: holds a password, which would be logged; set PGPASSWORD or use ~/.pgpass"
        if self.ef_construction < 2 * self.m:
            return f"ef_construction: expected at least 2 * m = {2 * self.m}, got {self.ef_construction}"
        if self.existing and self.search == "hybrid":
            return (
                "search: hybrid is for an index that the harness makes; search an existing table by hnsw or full_text"
            )
        if self.existing and self.search == "full_text" and self.analyzer == "harness":
            return "analyzer: expected the text search configuration of the existing table, such as english"
        return self.existing_problem()

    @property
    def where(self) -> str:
        """The address, which holds no password."""
        return self.uri

    def index_settings(self) -> dict[str, Any]:
        """The settings that the index of this kind is built with."""
        graph = ("similarity", "m", "ef_construction")
        decides = {
            "flat": ("similarity",),
            "hnsw": graph,
            "full_text": ("analyzer",),
            "hybrid": (*graph, "analyzer"),
        }
        return {name: getattr(self, name) for name in ("search", *decides[self.search])}

    def build(self, place: IndexPlace, batches: Iterator[Batch]) -> int:
        """Copy the chunks to a new table, index it in the same transaction, and return the bytes of both."""
        first = next(batches)
        columns, dimensions = ["id"], 0
        if first.vectors is not None:
            columns, dimensions = [*columns, "content"], first.vectors.shape[1]
        columns += ["words"] if self.search in _WITH_WORDS else []
        if self.search in _WITH_GRAPH and dimensions > _DIMENSIONS:
            message = f"vectors have {dimensions:,} dimensions, but an HNSW index of pgvector takes {_DIMENSIONS:,}"
            raise HarnessError(f"retriever pgvector: {message}; use search: flat")
        with self._connected() as connection, connection.transaction():
            rows = itertools.chain.from_iterable(map(self._rows, itertools.chain([first], batches)))
            fill(connection, place.name, columns, dimensions, rows)
            if self.search in _WITH_WORDS:
                index_words(connection, place.name, "" if self.analyzer == "harness" else self.analyzer)
            if self.search in _WITH_GRAPH:
                index_graph(connection, place.name, self.m, self.ef_construction)
            connection.execute(f"ANALYZE {place.name}")
            size = connection.execute("SELECT pg_total_relation_size(%s::regclass)", [place.name]).fetchone()
            return int(size[0])

    def _rows(self, batch: Batch) -> Iterator[tuple[Any, ...]]:
        """The values of each chunk, in the order of the columns."""
        columns: list[Sequence[Any]] = [batch.numbers.tolist()]
        if batch.vectors is not None:
            columns.append(list(similar(batch.vectors, self.similarity)))
        if self.search in _WITH_WORDS:
            ours = self.analyzer == "harness"
            columns.append([as_tsvector(words_of(text)) if ours else storable(text) for text in batch.texts])
        return zip(*columns, strict=True)

    def is_built(self, place: IndexPlace, chunks: int) -> bool:
        """Whether the table is there with so many chunks; a build that was killed has left none."""
        with self._connected() as connection:
            if connection.execute("SELECT to_regclass(%s)", [place.name]).fetchone()[0] is None:
                return False
            return bool(connection.execute(f"SELECT count(*) FROM {place.name}").fetchone()[0] == chunks)

    def drop(self, place: IndexPlace) -> None:
        """Remove the table."""
        with self._connected() as connection:
            connection.execute(f"DROP TABLE IF EXISTS {place.name}")

    @contextlib.contextmanager
    def opened(self, place: IndexPlace) -> Iterator[Any]:
        """Connect for searches of the table."""
        with self.browsed() as connection:
            yield connection, place.name

    @contextlib.contextmanager
    def browsed(self) -> Iterator[Any]:
        """Connect for searches, in transactions that can only read."""
        with self._connected() as connection:
            connection.execute("SET default_transaction_read_only = on")
            if self.search in _WITH_GRAPH:
                connection.execute(f"SET hnsw.ef_search = {min(1000, max(self.ef_search, self.depth + SPARE))}")
                connection.execute("SET hnsw.iterative_scan = strict_order")  # to find `depth`, however many that are
                if self.existing and not connection.execute(_GRAPHS, [_quoted(self.existing)]).fetchone():
                    message = f"{self.existing} is not there, or has no HNSW index, and is searched by search: flat"
                    raise HarnessError(f"retriever pgvector: {message}")
            elif self.search == "flat":
                connection.execute("SET enable_indexscan = off")  # an existing table may have an approximate index
            yield connection

    def nearest(self, opened: Any, texts: list[str], vectors: Vectors | None) -> Rankings:
        """Return the hits with PostgreSQL's scores: inner products (cosines), ranks of words, or sums of both."""
        asked = similar(vectors, self.similarity) if self.compares_vectors else [None] * len(texts)
        found = [self._found(opened, *pair) for pair in zip(texts, asked, strict=True)]
        return rankings(found, self.depth, decimals=9 if self.search in _WITH_WORDS else 5)

    def _found(self, opened: tuple[Any, str], text: str, vector: Vectors | None) -> tuple[Ints, Floats]:
        from psycopg import sql

        connection, name = opened
        words = self._query(connection, text) if self.search in _WITH_WORDS else None
        given = {"vector": vector, "words": words, "limit": self.depth + SPARE, "depth": self.depth, "c": self.c}
        # Of unit vectors, inner products are cosines; a text without a word has a vector of zeros, and none.
        limit = "depth" if self.search == "hybrid" else "limit"
        near = nearest(["id"], [name], "content", "dot", limit)
        matched = matching(["id"], [name], sql.Identifier("words"), (self.ranking, self.normalization), limit)
        statement = {"hybrid": fused(near, matched), "full_text": matched}.get(self.search, near)
        rows = connection.execute(statement, given).fetchall()
        return np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.float64)

    def _query(self, connection: Any, text: str) -> str:
        """The `tsquery` of a question: any of its words is enough for a chunk to be found."""
        if self.analyzer == "harness":
            return any_of(words_of(text))
        words = connection.execute(
            "SELECT tsvector_to_array(to_tsvector(%s::regconfig, %s))", [self.analyzer, storable(text)]
        )
        return any_of(words.fetchone()[0])

    def passages(self, browsed: Any, query: str, vector: Vectors | None) -> Sequence[Found]:
        """Search the existing table."""
        from psycopg import sql

        names, table = self.named(), self.existing.split(".")
        columns = list(names.values())
        if self.compares_vectors:
            statement = nearest(columns, table, self.fields.get("vector", "vector"), self.similarity, "limit")
            given: dict[str, Any] = {"vector": vector}
        else:
            words: Any = sql.SQL("to_tsvector({}::regconfig, {})").format(
                sql.Literal(self.analyzer), sql.Identifier(names["text"])
            )
            words = sql.Identifier(self.fields["words"]) if "words" in self.fields else words
            statement = matching(columns, table, words, (self.ranking, self.normalization), "limit")
            given = {"words": self._query(browsed, query)}
        rows = browsed.execute(statement, {**given, "limit": self.depth}).fetchall()
        return [Found(row[-1], dict(zip(names, row, strict=False))) for row in rows]

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        """A connection that commits each statement; what goes wrong with it is reported in one line."""
        import pgvector.psycopg
        import psycopg

        options: Any = {"autocommit": True, "connect_timeout": 10, "application_name": "retrieval-harness"}
        permanent = psycopg.ProgrammingError, psycopg.DataError
        failures = one_line(self.name(), self.uri, psycopg.Error, permanent=permanent)
        with failures, psycopg.connect(self.uri, **options) as connection:
            connection.execute(f"SET statement_timeout = {round(self.timeout * 1000)}")
            if self.compares_vectors:
                if connection.execute("SELECT to_regtype('vector')").fetchone()[0] is None:
                    message = "has no type `vector`; its owner can add it by: CREATE EXTENSION vector"
                    raise HarnessError(f"retriever pgvector: {self.uri} {message}")
                pgvector.psycopg.register_vector(connection)
            yield connection


def _quoted(table: str) -> str:
    """The name of a table, perhaps with its schema, as an identifier of SQL."""
    return ".".join(f'"{part}"' for part in table.replace('"', '""').split("."))
