"""Embedding vectors in SQLite, addressed by embedder and text, so that one text is embedded once for all launches."""

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from harness.errors import StoreError
from harness.model import Embedded
from harness.store import explained, locked

T = TypeVar("T")

_CORRUPT = {"SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_SHORT_READ", "SQLITE_CORRUPT_VTAB", "SQLITE_SCHEMA"}
_REFUSED = {
    "SQLITE_FULL": "the disk is full; free some space and start again, nothing finished is lost",
    "SQLITE_READONLY": "the file is read-only; name another folder with --store",
    "SQLITE_CANTOPEN": "the file cannot be opened; name another folder with --store",
    "SQLITE_BUSY": "another process has held it for over two minutes",
}


def text_key(text: str) -> bytes:
    """sha256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class VectorCache:
    """One SQLite file in WAL mode. It only ever holds what can be computed again: a damaged file is set aside."""

    BLOCK = 500

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged = 0
        self._db: sqlite3.Connection | None = None

    def missing(self, space: str, texts: Sequence[str]) -> list[str]:
        """The distinct texts not yet embedded in `space`, in order of first appearance."""
        distinct: dict[bytes, str] = {}
        for text in texts:
            distinct.setdefault(text_key(text), text)
        found = self._guarded(lambda db: self._lookup(db, space, list(distinct), columns="key"))
        stored = {row[0] for row in found}
        return [text for key, text in distinct.items() if key not in stored]

    def get(self, space: str, texts: Sequence[str]) -> Embedded | None:
        """Vectors for all texts, or None where any is missing."""
        keys = [text_key(text) for text in texts]
        rows = self._guarded(
            lambda db: self._lookup(db, space, list(dict.fromkeys(keys)), columns="key, vector, truncated")
        )
        stored = {key: (vector, truncated) for key, vector, truncated in rows}
        if len(stored) < len(set(keys)):
            return None
        if not keys:
            return Embedded(np.empty((0, 0), np.float32), np.empty(0, np.bool_))
        vectors = np.frombuffer(b"".join(stored[key][0] for key in keys), np.float32).reshape(len(keys), -1)
        return Embedded(vectors, np.array([bool(stored[key][1]) for key in keys]))

    def put(self, space: str, texts: Sequence[str], embedded: Embedded) -> None:
        """Store vectors, one transaction; a text already there keeps the vector it has."""
        rows = [
            (space, text_key(text), vector.astype(np.float32).tobytes(), int(cut))
            for text, vector, cut in zip(texts, embedded.vectors, embedded.truncated, strict=True)
        ]

        def write(db: sqlite3.Connection) -> None:
            with db:
                db.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?, ?)", rows)

        self._guarded(write)

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _lookup(self, db: sqlite3.Connection, space: str, keys: list[bytes], columns: str) -> list[tuple[bytes, ...]]:
        rows: list[tuple[bytes, ...]] = []
        for start in range(0, len(keys), self.BLOCK):
            block = keys[start : start + self.BLOCK]
            marks = ",".join("?" * len(block))
            query = f"SELECT {columns} FROM vectors WHERE space = ? AND key IN ({marks})"
            rows += db.execute(query, [space, *block]).fetchall()
        return rows

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            with explained(self.path.parent):
                self.path.parent.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(self.path, timeout=120)
            self._db = db
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
            db.execute(
                "CREATE TABLE IF NOT EXISTS vectors (space TEXT, key BLOB, vector BLOB NOT NULL,"
                " truncated INTEGER NOT NULL, PRIMARY KEY (space, key)) WITHOUT ROWID"
            )
        return self._db

    def _guarded(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return work(self._open())
        except sqlite3.DatabaseError as error:
            name = getattr(error, "sqlite_errorname", "")
            if name not in _CORRUPT:
                refused = next((why for code, why in _REFUSED.items() if name.startswith(code)), None)
                if refused is None:
                    raise
                raise StoreError(f"store {self.path}: {refused}") from error
        self._set_aside()
        return work(self._open())

    def _set_aside(self) -> None:
        """Rename the damaged file and its journals; every vector in it can be computed again."""
        self.close()
        self.damaged += 1
        with locked(self.path.with_suffix(".lock")):
            number = 1 + len(list(self.path.parent.glob(f"{self.path.name}.damaged-*")))
            self.path.replace(self.path.with_name(f"{self.path.name}.damaged-{number}"))
            for journal in ("-wal", "-shm"):
                self.path.with_name(self.path.name + journal).unlink(missing_ok=True)
