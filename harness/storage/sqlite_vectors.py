"""The SQLite file in which version 0.1 kept vectors; it is only read, to copy what embedding has cost."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from harness.storage.sqlite_file import SqliteFile
from harness.storage.sqlite_tables import Row
from harness.storage.vector_file import VectorFile, keys_of

_BLOCK = 4096


class SqliteVectors(SqliteFile):
    """Vectors by embedder and text."""

    TABLES: ClassVar = {"vectors": ("space TEXT", "key BLOB", "vector BLOB", "truncated INTEGER")}
    KEYS: ClassVar = {"vectors": 2}

    def plausible(self, table: str, row: Row) -> bool:
        """Whether a row has a non-empty float32 vector of finite numbers."""
        vector = row[2]
        complete = isinstance(vector, bytes) and len(vector) > 0 and len(vector) % 4 == 0
        return complete and bool(np.isfinite(np.frombuffer(vector, np.float32)).all())

    def blocks(self, namespace: str) -> Iterator[VectorFile]:
        """Yield the intact vectors of a namespace, in blocks."""
        after = b""
        while True:
            rows = self.guarded(lambda db, start=after: self._block(db, namespace, start))  # type: ignore[misc]
            if not rows:
                break
            after = rows[-1][1]
            sound = self.sound("vectors", rows)
            for _, same in groupby(sound, key=lambda row: len(row[2])):
                _, keys, vectors, truncated = zip(*same, strict=True)
                table = np.frombuffer(b"".join(vectors), np.float32).reshape(len(keys), -1)
                yield VectorFile(keys_of(keys), table, np.array(truncated, np.bool_))
        self.close()

    def _block(self, db: Any, namespace: str, after: bytes) -> list[Row]:
        query = "SELECT * FROM vectors WHERE space = ? AND key > ? ORDER BY key LIMIT ?"
        return list(db.execute(query, (namespace, after, _BLOCK)))
