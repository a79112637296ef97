"""Retrieval by Chroma: a server by its address, or a folder."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from harness.components.component import Positive, runtime
from harness.components.retrievers.database_searches import QUERIES, VectorDatabase, one_line, rankings, similar
from harness.components.retrievers.dense import SPARE
from harness.components.retrievers.existing_index import Found
from harness.components.roles import Batch, IndexPlace
from harness.core.errors import HarnessError
from harness.core.rankings import Rankings
from harness.core.records import Vectors
from harness.core.secrecy import address_fault, api_key, holds_credentials
from harness.storage.locks import locked


@dataclass(frozen=True)
class Chroma(VectorDatabase):
    """Search in Chroma, by vectors: an HNSW graph with `m` links, built with `ef_construction`, searched with
    `ef_search`. It is approximate, and its `ann_recall` is logged; another build may find other chunks.

    `uri` is the address of a server, such as `http://127.0.0.1:8000`, with the token in CHROMA_TOKEN, tenant and
    database in CHROMA_TENANT and CHROMA_DATABASE; or a folder, by default one in the store. Each index is a collection
    of its own, removed by `harness store prune`. `existing` is the collection to search instead, with the document of
    each record as its text; `fields` has the names of `doc`, `start`, `end`, or another `text`, in the metadata.
    """

    decides: ClassVar[bool] = True

    depth: Positive = 50
    similarity: Literal["cosine", "dot"] = "cosine"
    m: Annotated[int, Field(ge=2, le=2048)] = 16
    ef_construction: Positive = 100
    ef_search: Positive = 100
    existing: str = ""
    fields: Mapping[str, str] = field(default_factory=dict, hash=False)
    release: str = ""
    uri: str = runtime("")
    timeout: Annotated[float, Field(gt=0)] = runtime(600.0)

    def packages(self) -> Mapping[str, str]:
        """Chroma, with its own server."""
        return {"chromadb": "chroma"}

    def problem(self) -> str | None:
        """An error message if the address is none, or holds a key, or the settings do not fit together."""
        if "://" in self.uri:
            fault = address_fault(self.uri)
            if fault:
                return f"uri: {fault.replace('11434/v1', '8000')}"
            if holds_credentials(self.uri):
                return "uri: holds a user, a password or a key, which would be logged; set CHROMA_TOKEN"
        return self.existing_problem()

    def facts(self) -> Mapping[str, str]:
        """Where an index is that exists already, tenant and database included."""
        facts = super().facts()
        named = {name.lower(): os.environ.get(name, "") for name in ("CHROMA_TENANT", "CHROMA_DATABASE")}
        return {**facts, **{name: value for name, value in named.items() if value}} if facts else facts

    def index_settings(self) -> dict[str, Any]:
        """All settings of the graph: Chroma keeps `ef_search` with the collection, and finds no more than that."""
        graph = {name: getattr(self, name) for name in ("similarity", "m", "ef_construction")}
        return {**graph, "ef_search": max(self.ef_search, self.depth + SPARE)}

    def build(self, place: IndexPlace, batches: Iterator[Batch]) -> int | None:
        """Add the chunks to a new collection; return the bytes of the folder. A server does not report them."""
        self._clear(place)
        known = self.index_settings()
        graph = {"space": "ip", "max_neighbors": self.m, **{n: known[n] for n in ("ef_construction", "ef_search")}}
        with self._connected(place) as (client, folder):
            collection = client.create_collection(place.name, configuration={"hnsw": graph}, embedding_function=None)
            most = client.get_max_batch_size()
            for batch in batches:
                vectors = similar(batch.vectors, self.similarity)
                for begin in range(0, len(vectors), most):
                    at = slice(begin, begin + most)
                    collection.add(ids=list(map(str, batch.numbers[at].tolist())), embeddings=vectors[at])
        return None if not folder else sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())

    def is_built(self, place: IndexPlace, chunks: int) -> bool:
        """Whether the collection is there with so many chunks."""
        with self._connected(place) as (client, _):
            named = [one.name for one in client.list_collections()]
            return place.name in named and bool(client.get_collection(place.name).count() == chunks)

    def drop(self, place: IndexPlace) -> None:
        """Remove the collection, or the folder of its own."""
        self._clear(place)

    def _clear(self, place: IndexPlace) -> None:
        if not self.uri:
            shutil.rmtree(self._own_folder(place), ignore_errors=True)
            return
        import chromadb.errors

        with self._connected(place) as (client, _), contextlib.suppress(chromadb.errors.NotFoundError):
            client.delete_collection(place.name)

    @contextlib.contextmanager
    def opened(self, place: IndexPlace) -> Iterator[Any]:
        """Open the collection."""
        with self._connected(place) as (client, _):
            yield client.get_collection(place.name, embedding_function=None)

    @contextlib.contextmanager
    def browsed(self) -> Iterator[Any]:
        """Open the existing collection; of a folder, a copy, as Chroma writes to the folders that it opens."""
        with contextlib.ExitStack() as stack:
            folder = ""
            if "://" not in self.uri:
                if not (Path(self.uri) / "chroma.sqlite3").is_file():
                    raise HarnessError(f"retriever chroma: {self.uri} is not a folder of Chroma")
                folder = f"{stack.enter_context(tempfile.TemporaryDirectory())}/copy"
                shutil.copytree(self.uri, folder)
            client, _ = stack.enter_context(self._connected(None, folder))
            collection = client.get_collection(self.existing, embedding_function=None)
            kinds = collection.configuration.values()
            # Distances are squared, or 1 less the similarity.
            yield collection, 0 if any(kind and kind.get("space") == "l2" for kind in kinds) else 1

    def nearest(self, opened: Any, texts: list[str], vectors: Vectors | None) -> Rankings:
        """Return the hits with Chroma's scores: inner products (cosines) in single precision."""
        found, asked = [], similar(vectors, self.similarity)
        for begin in range(0, len(asked), QUERIES):
            wanted = {"n_results": self.depth + SPARE, "include": ["distances"]}
            rows = opened.query(query_embeddings=asked[begin : begin + QUERIES], **wanted)
            for ids, distances in zip(rows["ids"], rows["distances"], strict=True):
                found.append((np.array(ids, np.int64), 1 - np.array(distances, np.float64)))
        return rankings(found, self.depth, decimals=5)

    def passages(self, browsed: Any, query: str, vector: Vectors | None) -> Sequence[Found]:
        """Search the existing collection; its distances are turned into scores."""
        include = ["documents", "metadatas", "distances"]
        collection, best = browsed
        rows = collection.query(query_embeddings=[vector], n_results=self.depth, include=include)
        found = []
        for at, distance in enumerate(rows["distances"][0]):
            known = {"text": rows["documents"][0][at], "id": rows["ids"][0][at]}
            metadata = rows["metadatas"][0][at] or {}
            known |= {name: metadata.get(self.fields[name]) for name in self.fields if name != "vector"}
            found.append(Found(best - distance, known))
        return found

    def _own_folder(self, place: IndexPlace) -> Path:
        """The folder of an index without an address: one for each, as only one process may write to it."""
        return place.folder / "chroma" / place.name

    @contextlib.contextmanager
    def _connected(self, place: IndexPlace | None, folder: str = "") -> Iterator[tuple[Any, str]]:
        """The client, and the folder if there is no server; what goes wrong is reported in one line."""
        with contextlib.ExitStack() as stack:
            import chromadb.errors
            import httpx

            if "://" not in self.uri and place is not None:
                folder = self.uri or str(self._own_folder(place))
            failures = (chromadb.errors.ChromaError, httpx.HTTPError, ValueError, RuntimeError, OSError)
            permanent = chromadb.errors.NotFoundError, chromadb.errors.InvalidArgumentError
            stack.enter_context(one_line(self.name(), self.uri or folder, *failures, permanent=permanent))
            settings = chromadb.config.Settings(_env_file=None, anonymized_telemetry=False)
            if folder:
                Path(folder).parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(Path(f"{folder}.lock")))
                client = chromadb.PersistentClient(folder, settings=settings)
            else:
                token = api_key("CHROMA_TOKEN")
                client = chromadb.HttpClient(
                    host=self.uri,
                    ssl=self.uri.startswith("https:"),
                    headers={"X-Chroma-Token": token} if token else None,
                    settings=settings,
                    tenant=os.environ.get("CHROMA_TENANT", chromadb.config.DEFAULT_TENANT),
                    database=os.environ.get("CHROMA_DATABASE", chromadb.config.DEFAULT_DATABASE),
                )
                # The client would wait forever, and has no setting for it.
                client._server._session.timeout = httpx.Timeout(self.timeout, connect=10)
            stack.callback(client.close)
            yield client, folder
