"""Retrieval by Milvus: a server or a cluster by its address, or Milvus Lite in this process."""

import contextlib
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from harness.components.component import Fraction, Positive, runtime
from harness.components.retrievers.database_searches import QUERIES, DatabaseSearch, one_line, rankings, similar
from harness.components.retrievers.dense import SPARE
from harness.components.retrievers.existing_index import Found
from harness.components.roles import Batch, IndexPlace
from harness.core.errors import HarnessError
from harness.core.rankings import Rankings
from harness.core.records import Floats, Ints, Vectors
from harness.core.secrecy import address_fault, api_key, holds_credentials
from harness.storage.digest import digest
from harness.storage.locks import locked

_KINDS = {"flat": "FLAT", "hnsw": "HNSW", "ivf_flat": "IVF_FLAT", "full_text": "SPARSE_INVERTED_INDEX"}
_ROWS = 1000
"""Chunks of one request."""
_LONGEST = 65_535
"""Characters (of Milvus Lite) or bytes (of a cluster) that a text may have."""


@dataclass(frozen=True)
class Milvus(DatabaseSearch):
    """Search in Milvus, by vectors or by words.

    `search: flat` is exact; `hnsw` (graph with `m` links, built with `ef_construction`, searched with `ef_search`) and
    `ivf_flat` (`lists` cells, `probes` of them searched) are approximate. `ann_recall` is logged. `full_text` is BM25
    with `k1` and `b` over the words of the `analyzer`: `harness` are those of `bm25`, `standard` and `english` Milvus'
    own. `uri` is the address of a server, such as `http://127.0.0.1:19530`, with the token in MILVUS_TOKEN, or a file
    such as `./milvus.db` for Milvus Lite, by default one in the store. Milvus Lite holds an index in memory while it is
    searched, has no analyzer `english`, and counts words in segments, so that its
    BM25 is approximate on a large corpus. `existing` is the collection to search instead, which is only read, and is
    loaded on a server; `fields` has its fields: `text`, `vector`, `doc`, `start`, `end`, `id`, and `words`, a sparse
    vector made of the text.
    """

    decides: ClassVar[bool] = True

    depth: Positive = 50
    search: Literal["flat", "hnsw", "ivf_flat", "full_text"] = "flat"
    similarity: Literal["cosine", "dot"] = "cosine"
    m: Annotated[int, Field(ge=2, le=2048)] = 16
    ef_construction: Positive = 200
    ef_search: Positive = 100
    lists: Positive = 128
    probes: Positive = 16
    k1: Annotated[float, Field(gt=0, le=3)] = 0.9
    b: Fraction = 0.4
    analyzer: Literal["harness", "standard", "english"] = "harness"
    existing: str = ""
    fields: Mapping[str, str] = field(default_factory=dict, hash=False)
    release: str = ""
    uri: str = runtime("")
    timeout: Annotated[float, Field(gt=0)] = runtime(600.0)

    def packages(self) -> Mapping[str, str]:
        """The client, and Milvus Lite if there is no server."""
        return {"pymilvus": "milvus", **({"milvus_lite": "milvus"} if _is_file(self.uri) else {})}

    def problem(self) -> str | None:
        """An error message if the address is none, or holds a key, or the settings do not fit together."""
        if not _is_file(self.uri):
            fault = address_fault(self.uri)
            if fault:
                return f"uri: {fault.replace('11434/v1', '19530')}; or name a file such as ./milvus.db"
            if holds_credentials(self.uri):
                return "uri: holds a user, a password or a key, which would be logged; set MILVUS_TOKEN"
        elif self.analyzer == "english":
            return "analyzer: Milvus Lite has no english; use harness or standard, or a server"
        return self.existing_problem()

    def index_settings(self) -> dict[str, Any]:
        """The settings that the index of this kind is built with."""
        decides = {
            "flat": ("similarity",),
            "hnsw": ("similarity", "m", "ef_construction"),
            "ivf_flat": ("similarity", "lists"),
            "full_text": ("analyzer", "k1", "b"),
        }
        return {name: getattr(self, name) for name in ("search", *decides[self.search])}

    def build(self, place: IndexPlace, batches: Iterator[Batch]) -> int | None:
        """Send the chunks to a new collection, and wait for its index; return the bytes of Milvus Lite's files.

        A server does not report them.
        """
        with self._connected(place) as (client, file):
            client.drop_collection(place.name)
            first = True
            for batch in batches:
                content = self._content(batch)
                if first:
                    self._create(client, place.name, 0 if batch.vectors is None else content.shape[1])
                    first = False
                for begin in range(0, len(batch.numbers), _ROWS):
                    at = slice(begin, begin + _ROWS)
                    pairs = zip(batch.numbers[at].tolist(), content[at], strict=True)
                    rows = [{"id": number, "content": one} for number, one in pairs]
                    client.insert(place.name, rows, timeout=self.timeout)
            client.flush(place.name, timeout=self.timeout)
            # Of unflushed rows, the index would be built in the background, and searches be exact until then.
            client.release_collection(place.name)
            self._index(client, place.name)
            client.load_collection(place.name, timeout=self.timeout)
            return sum(path.stat().st_size for path in Path(file).rglob("*") if path.is_file()) if file else None

    def _content(self, batch: Batch) -> Any:
        if batch.vectors is not None:
            return similar(batch.vectors, self.similarity)
        return [self.words(text)[:_LONGEST] for text in batch.texts]

    def _create(self, client: Any, name: str, dimensions: int) -> None:
        from pymilvus import DataType, Function, FunctionType

        schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", DataType.INT64, is_primary=True)
        if dimensions:
            schema.add_field("content", DataType.FLOAT_VECTOR, dim=dimensions)
        else:
            analyzer = {"type": "english"} if self.analyzer == "english" else {"tokenizer": "standard"}
            schema.add_field(
                "content", DataType.VARCHAR, max_length=_LONGEST, enable_analyzer=True, analyzer_params=analyzer
            )
            schema.add_field("words", DataType.SPARSE_FLOAT_VECTOR)
            schema.add_function(Function("bm25", FunctionType.BM25, ["content"], ["words"]))
        client.create_collection(name, schema=schema, timeout=self.timeout)

    def _index(self, client: Any, name: str) -> None:
        settings = {
            "hnsw": {"M": self.m, "efConstruction": self.ef_construction},
            "ivf_flat": {"nlist": self.lists},
            "full_text": {"bm25_k1": self.k1, "bm25_b": self.b},
        }.get(self.search, {})
        params = client.prepare_index_params()
        field, metric = ("content", "IP") if self.uses_vectors else ("words", "BM25")
        # Nested as on the wire: the client sends plain ones in a form that Milvus Lite ignores.
        params.add_index(field, index_type=_KINDS[self.search], metric_type=metric, params={"params": settings})
        client.create_index(name, params, timeout=self.timeout)

    def is_built(self, place: IndexPlace, chunks: int) -> bool:
        """Whether the collection is there with so many chunks."""
        with self._connected(place) as (client, _):
            if not client.has_collection(place.name):
                return False
            return bool(
                client.get_collection_stats(place.name)["row_count"] == chunks and client.list_indexes(place.name)
            )

    def drop(self, place: IndexPlace) -> None:
        """Remove the collection, and the files of a Milvus Lite of its own."""
        if not self.uri:
            shutil.rmtree(_own_file(place), ignore_errors=True)
            return
        with self._connected(place) as (client, _):
            client.drop_collection(place.name)

    @contextlib.contextmanager
    def opened(self, place: IndexPlace) -> Iterator[Any]:
        """Load the collection."""
        with self._connected(place) as (client, _):
            client.load_collection(place.name, timeout=self.timeout)
            yield client, place.name

    @contextlib.contextmanager
    def browsed(self) -> Iterator[Any]:
        """Open the existing collection. Only Milvus Lite is told to load it: on a server, that would cost memory."""
        if _is_file(self.uri) and not Path(self.uri).exists():
            raise HarnessError(f"retriever milvus: {self.uri} does not exist")
        with self._connected(None) as (client, file):
            if file:
                client.load_collection(self.existing, timeout=self.timeout)
            indexes = [client.describe_index(self.existing, name) for name in client.list_indexes(self.existing)]
            yield client, {index["field_name"]: index["metric_type"] for index in indexes}

    def passages(self, browsed: Any, query: str, vector: Vectors | None) -> Sequence[Found]:
        """Search the existing collection; distances are turned into scores."""
        client, metrics = browsed
        names, kind = self.named(), "words" if vector is None else "vector"
        searched = self.fields.get(kind, kind)
        (rows,) = client.search(
            self.existing,
            data=[query if vector is None else vector],
            anns_field=searched,
            limit=self.depth,
            output_fields=list(names.values()),
            search_params={"params": self._search_params(self.depth)},
            timeout=self.timeout,
        )
        sign = -1 if metrics.get(searched) == "L2" else 1
        return [
            # Milvus Lite negates scores of BM25.
            Found(abs(hit["distance"]) if vector is None else sign * hit["distance"], _values(hit, names))
            for hit in rows
        ]

    def _search_params(self, depth: int) -> dict[str, int]:
        return {"hnsw": {"ef": max(self.ef_search, depth)}, "ivf_flat": {"nprobe": self.probes}}.get(self.search, {})

    def nearest(self, opened: Any, texts: list[str], vectors: Vectors | None) -> Rankings:
        """Return the hits with the scores of Milvus: inner products (cosines) in single precision, or BM25."""
        client, name = opened
        asked: Any = similar(vectors, self.similarity) if self.uses_vectors else list(map(self.words, texts))
        found: list[tuple[Ints, Floats]] = []
        for begin in range(0, len(asked), QUERIES):
            rows = client.search(
                name,
                data=list(asked[begin : begin + QUERIES]),
                anns_field="content" if self.uses_vectors else "words",
                limit=self.depth + SPARE,
                output_fields=["id"],
                search_params={"params": self._search_params(self.depth + SPARE)},
                timeout=self.timeout,
            )
            for hits in rows:
                # Milvus Lite negates scores of BM25.
                scores = np.array([hit["distance"] for hit in hits], np.float64)
                ids = np.array([hit["id"] for hit in hits], np.int64)
                found.append((ids, scores if self.uses_vectors else np.abs(scores)))
        return rankings(found, self.depth, decimals=5)

    @contextlib.contextmanager
    def _connected(self, place: IndexPlace | None) -> Iterator[tuple[Any, str]]:
        """The client, and the file of Milvus Lite; what goes wrong is reported in one line."""
        file = self.uri if _is_file(self.uri) else ""
        if place is not None and not self.uri:
            file = str(_own_file(place))
        with contextlib.ExitStack() as stack:
            if file:
                stack.enter_context(locked(_lock_of(file, place)))
            pymilvus = _client_library()
            import grpc

            stack.enter_context(one_line(self.name(), file or self.uri, pymilvus.MilvusException, grpc.RpcError))
            token = {} if file else {"token": api_key("MILVUS_TOKEN") or ""}
            client = pymilvus.MilvusClient(uri=file or self.uri, timeout=10, dedicated=True, **token)
            stack.callback(client.close)
            if file:
                from milvus_lite.server_manager import server_manager_instance

                stack.callback(server_manager_instance.release_server, file)
            yield client, file


def _values(hit: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """What a hit knows of a passage, by name of `FIELDS`."""
    return {name: hit["entity"].get(key) for name, key in names.items()}


def _lock_of(file: str, place: IndexPlace | None) -> Path:
    """The lock of a file that only one process may open; nothing is made beside one that exists already."""
    if place is None:
        return Path(tempfile.gettempdir()) / f"retrieval-harness-{digest(str(Path(file).resolve()))[:16]}.lock"
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    return Path(f"{file}.lock")


def _own_file(place: IndexPlace) -> Path:
    """The file of a Milvus Lite without an address: one for each index, as only one process may open it."""
    return place.folder / "milvus" / f"{place.name}.db"


def _is_file(uri: str) -> bool:
    return not uri or uri.endswith(".db")


def _client_library() -> Any:
    """pymilvus, which would print a traceback for every failed call, and reads its address from MILVUS_URI.

    Milvus Lite writes its rows to files in steps of 16 MB instead of 128, which take much memory, unless it is told
    otherwise.
    """
    os.environ.setdefault("MILVUS_LITE_MEMTABLE_MEMORY_LIMIT_BYTES", str(2**24))
    kept = os.environ.pop("MILVUS_URI", None)
    try:
        import pymilvus
    finally:
        if kept is not None:
            os.environ["MILVUS_URI"] = kept
    for name in ("pymilvus", "milvus_lite"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return pymilvus
