"""Indexes in vector databases: what a store knows of them, so that unused ones are found and removed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np

from harness.components.roles import Batch, DatabaseRetriever, Embedder, IndexPlace
from harness.experiment.catalog import component, to_spec
from harness.running.stages.passages import Passages
from harness.running.stages.workspace import Workspace
from harness.storage.digest import digest
from harness.storage.files import explained, keep_file

RECORDS = "databases"
"""The folder of a store with a record of each index in a database, written before the index is built."""

_ROWS = 4096
"""Chunks of a batch."""


def place_of(store: Path, address: str) -> IndexPlace:
    """Where the index of an address is: the name has most of the address, as databases limit its length."""
    return IndexPlace(f"harness_{address[:40]}", store / "indexes")


def record_name(address: str, database: DatabaseRetriever) -> str:
    """The name of an index's record in a store; indexes in several databases have several."""
    where = f".{digest(database.where)[:8]}" if database.where else ""
    return f"{RECORDS}/harness_{address[:40]}{where}.json"


def note(store: Path, address: str, database: DatabaseRetriever, size: int | None = 0) -> None:
    """Keep the record of an index, with its size in bytes if it is built. Raises StoreError if it cannot be kept."""
    record = json.dumps({"retriever": to_spec(database), "bytes": size or 0})
    with explained(store):
        keep_file(store / RECORDS, Path(record_name(address, database)).name, record.encode())


def noted_bytes(record: Path) -> int:
    """The size of a recorded index in bytes; 0 if it was never completed, or the database does not report it."""
    return int(json.loads(record.read_text(encoding="utf-8"))["bytes"])


def drop_noted(store: Path, record: Path) -> None:
    """Remove a recorded index from its database. Raises HarnessError if the database cannot be used."""
    spec = json.loads(record.read_text(encoding="utf-8"))["retriever"]
    database = cast(DatabaseRetriever, component("retriever", spec, where=str(record), base_dir=Path("/")))
    database.drop(IndexPlace(record.name.partition(".")[0], store / "indexes"))


class Feed:
    """The chunks of a corpus in batches; `truncated` counts those that the embedder has truncated."""

    def __init__(self, passages: Passages, embedder: Embedder | None, work: Workspace) -> None:
        self._passages, self._embedder, self._work = passages, embedder, work
        self.truncated = 0

    def __iter__(self) -> Iterator[Batch]:
        texts = self._passages.texts
        for first in range(0, len(texts), _ROWS):
            batch = texts[first : first + _ROWS]
            numbers, vectors = np.arange(first, first + len(batch)), None
            if self._embedder is not None:
                embedded = self._work.vectors.embed(self._embedder, batch)
                vectors = embedded.vectors
                self.truncated += int(embedded.truncated.sum())
            yield Batch(numbers, batch, vectors)
