"""Retrieval by LanceDB: a database in a folder or an object store, without a server."""

import contextlib
import datetime
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from harness.components.component import NotNegative, Positive, runtime
from harness.components.retrievers.database_searches import QUERIES, DatabaseSearch, one_line, rankings, similar
from harness.components.retrievers.dense import SPARE
from harness.components.retrievers.existing_index import Found
from harness.components.roles import Batch, IndexPlace
from harness.core.errors import HarnessError
from harness.core.rankings import Rankings
from harness.core.records import Floats, Ints, Vectors
from harness.core.secrecy import holds_credentials

_FAILURES = (RuntimeError, ValueError, OSError, ImportError)
"""What LanceDB raises; it has no exceptions of its own, and imports further packages while it works."""

_TRAINING = 256
"""Chunks that k-means needs: of all for the codes of PQ, and of each cell."""

_PARTITION = 1_000_000
"""Chunks of one graph; a larger table has several."""


@dataclass(frozen=True)
class Lancedb(DatabaseSearch):
    """Search in LanceDB, by vectors or by words; its tables are on disk, so that they may be larger than memory.

    `search: flat` is exact; `hnsw` (graph with `m` links over vectors of 8 bits, built with `ef_construction`, searched
    with `ef_search`) and `ivf_pq` (`lists` cells, `probes` of them searched) are approximate, and rescore the first
    `refine` times `depth` hits with the vectors themselves. Below 256 chunks, all vectors are compared, and there is at
    most one cell per 256 chunks. `ann_recall` is logged. `full_text` is BM25 with k1 = 1.2
    and b = 0.75, over the words of the `analyzer`: `harness` are those of `bm25`, `english` and `standard` LanceDB's
    own with and without stemming and stop words. `uri` is a folder or a URL such as `s3://bucket/folder`, by default a
    folder of the store. `existing` is the table to search instead, as its own index does, which is only read; `fields`
    has its columns: `text`, `vector`, `doc`, `start`, `end` and `id`.
    """

    depth: Positive = 50
    search: Literal["flat", "hnsw", "ivf_pq", "full_text"] = "flat"
    similarity: Literal["cosine", "dot"] = "cosine"
    m: Annotated[int, Field(ge=4, le=2048)] = 20
    ef_construction: Positive = 300
    ef_search: Positive = 100
    lists: Positive = 256
    probes: Positive = 20
    refine: NotNegative = 5
    analyzer: Literal["harness", "english", "standard"] = "harness"
    existing: str = ""
    fields: Mapping[str, str] = field(default_factory=dict, hash=False)
    release: str = ""
    uri: str = runtime("")

    def packages(self) -> Mapping[str, str]:
        """LanceDB."""
        return {"lancedb": "lancedb"}

    def problem(self) -> str | None:
        """An error message if the address holds a key, or the settings do not fit together."""
        if holds_credentials(self.uri):
            return (
                "uri: holds a user, a password or a key, which would be logged; set AWS_SECRET_ACCESS_KEY and the like"
            )
        return self.existing_problem()

    def index_settings(self) -> dict[str, Any]:
        """The settings that the index of this kind is built with."""
        decides = {
            "flat": ("similarity",),
            "hnsw": ("similarity", "m", "ef_construction"),
            "ivf_pq": ("similarity", "lists"),
            "full_text": ("analyzer",),
        }
        return {name: getattr(self, name) for name in ("search", *decides[self.search])}

    def build(self, place: IndexPlace, batches: Iterator[Batch]) -> int:
        """Write the chunks to a table, one batch after another, then index it; return the bytes of both."""
        import pyarrow as pa

        with self._connected(place) as database:
            # Also removes the files of a killed build, which overwriting would leave.
            database.drop_table(place.name, ignore_missing=True)
            first = next(batches)
            kind = pa.string() if first.vectors is None else pa.list_(pa.float32(), first.vectors.shape[1])
            schema = pa.schema([("id", pa.int64()), ("content", kind)])

            def rows() -> Iterator[Any]:
                for batch in itertools.chain([first], batches):
                    yield pa.record_batch([pa.array(batch.numbers), self._content(batch, kind)], schema=schema)

            reader = pa.RecordBatchReader.from_batches(schema, rows())
            table = database.create_table(place.name, data=reader)
            config = self._config(table.count_rows())
            if config is not None:
                table.create_index("content", config=config, wait_timeout=datetime.timedelta(days=1))
            return int(table.stats()["total_bytes"])

    def _content(self, batch: Batch, kind: Any) -> Any:
        """What is indexed of a batch, as an Arrow array."""
        import pyarrow as pa

        if batch.vectors is None:
            return pa.array([self.words(text) for text in batch.texts], kind)
        vectors = similar(batch.vectors, self.similarity)
        return pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])

    def _config(self, chunks: int) -> Any:
        """The index of a table; None to compare all vectors, as also for too few chunks to train an index."""
        from lancedb.index import FTS, HnswSq, IvfPq

        if self.search == "full_text":
            plain: dict[str, Any] = {"stem": False, "remove_stop_words": False, "ascii_folding": False}
            if self.analyzer == "harness":
                return FTS(base_tokenizer="whitespace", lower_case=False, max_token_length=None, **plain)
            return FTS() if self.analyzer == "english" else FTS(**plain)
        if self.search == "flat" or chunks < _TRAINING:
            return None
        if self.search == "hnsw":
            partitions = -(-chunks // _PARTITION)
            return HnswSq("dot", num_partitions=partitions, m=self.m, ef_construction=self.ef_construction)
        return IvfPq("dot", num_partitions=max(1, min(self.lists, chunks // _TRAINING)))

    def is_built(self, place: IndexPlace, chunks: int) -> bool:
        """Whether the table is there with so many chunks, and with its index."""
        with self._connected(place) as database:
            if place.name not in database:
                return False
            try:
                table = database.open_table(place.name)
            except ValueError:  # listed, but never completed
                return False
            indexed = self._config(chunks) is None or bool(table.list_indices())
            return bool(table.count_rows() == chunks and indexed)

    def drop(self, place: IndexPlace) -> None:
        """Remove the table."""
        with self._connected(place) as database:
            database.drop_table(place.name, ignore_missing=True)

    @contextlib.contextmanager
    def opened(self, place: IndexPlace) -> Iterator[Any]:
        """Open the table."""
        with self._connected(place) as database:
            yield database.open_table(place.name)

    @contextlib.contextmanager
    def browsed(self) -> Iterator[Any]:
        """Open the existing table."""
        if "://" not in self.uri and not Path(self.uri).is_dir():  # which connecting would make
            raise HarnessError(f"retriever lancedb: {self.uri} does not exist")
        with self._connected(None) as database:
            yield database.open_table(self.existing)

    def passages(self, browsed: Any, query: str, vector: Vectors | None) -> Sequence[Found]:
        """Search the existing table."""
        names = self.named()
        if vector is None:
            from lancedb.query import MatchQuery

            search, score = browsed.search(MatchQuery(query, names["text"]), query_type="fts"), "_score"
        else:
            column, score = self.fields.get("vector", "vector"), "_distance"
            search = browsed.search(vector, vector_column_name=column).distance_type(self.similarity)
            search = search.bypass_vector_index() if self.search == "flat" else search.nprobes(self.probes)
            search = search.ef(max(self.ef_search, self.depth)) if self.search == "hnsw" else search
        rows = search.select([*names.values(), score]).limit(self.depth).to_list()
        best, sign = (0, 1) if vector is None else (1, -1)  # both distances are 1 less the similarity
        return [Found(best + sign * row[score], {name: row[key] for name, key in names.items()}) for row in rows]

    def nearest(self, opened: Any, texts: list[str], vectors: Vectors | None) -> Rankings:
        """Return the hits with LanceDB's scores: inner products (cosines) in single precision, or BM25."""
        if not self.uses_vectors:
            return rankings([self._matching(opened, text) for text in texts], self.depth, decimals=5)
        asked, found = similar(vectors, self.similarity), list[tuple[Ints, Floats]]()
        for begin in range(0, len(asked), QUERIES):
            found += self._nearest(opened, asked[begin : begin + QUERIES])
        return rankings(found, self.depth, decimals=5)

    def _nearest(self, table: Any, vectors: Vectors) -> Iterator[tuple[Ints, Floats]]:
        # Two dimensions mean several queries, whose hits are numbered; a single one must have one dimension.
        search = table.search(vectors if len(vectors) > 1 else vectors[0]).distance_type("dot")
        if self.search == "flat":
            search = search.bypass_vector_index()
        else:
            search = search.nprobes(self.probes)
            # LanceDB refuses to collect fewer than it rescores.
            collected = max(self.ef_search, (self.depth + SPARE) * max(1, self.refine))
            search = search.ef(collected) if self.search == "hnsw" else search
            search = search.refine_factor(self.refine) if self.refine else search
        rows = search.select(["id", "_distance"]).limit(self.depth + SPARE).to_arrow()
        ids, scores = rows["id"].to_numpy(), 1 - rows["_distance"].to_numpy().astype(np.float64)
        query = rows["query_index"].to_numpy() if len(vectors) > 1 else np.zeros(len(ids), np.int64)
        for number in range(len(vectors)):
            yield ids[query == number], scores[query == number]

    def _matching(self, table: Any, text: str) -> tuple[Ints, Floats]:
        from lancedb.query import FullTextOperator, MatchQuery

        query = MatchQuery(self.words(text), "content", operator=FullTextOperator.OR)
        search = table.search(query, query_type="fts").select(["id", "_score"]).limit(self.depth + SPARE)
        rows = search.to_arrow()
        return rows["id"].to_numpy(), rows["_score"].to_numpy().astype(np.float64)

    @contextlib.contextmanager
    def _connected(self, place: IndexPlace | None) -> Iterator[Any]:
        """The database; what goes wrong with it is reported in one line."""
        import lancedb

        uri = self.uri or ("" if place is None else str(place.folder / "lancedb"))
        with one_line(self.name(), uri, *_FAILURES):
            # Keys are those of the environment; a server of one's own is often without TLS.
            yield lancedb.connect(uri, storage_options={"allow_http": "true"} if "://" in uri else None)
