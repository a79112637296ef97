"""SQLite caches of model outputs (vectors and reranker scores), so that each text is computed and paid for once."""

import contextlib
import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from harness.core.errors import DataError
from harness.core.records import Embedded
from harness.storage.locks import locked
from harness.storage.sqlite_file import SqliteFile
from harness.storage.sqlite_tables import Row


def text_key(text: str) -> bytes:
    """The sha256 of a text, 32 bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class VectorCache(SqliteFile):
    """Vectors by embedder and text. Everything in this cache can be computed again."""

    TABLES: ClassVar = {"vectors": ("space TEXT", "key BLOB", "vector BLOB", "truncated INTEGER")}
    KEYS: ClassVar = {"vectors": 2}

    def plausible(self, table: str, row: Row) -> bool:
        """Whether a row has a non-empty float32 vector of finite numbers."""
        vector = row[2]
        complete = isinstance(vector, bytes) and len(vector) > 0 and len(vector) % 4 == 0
        return complete and bool(np.isfinite(np.frombuffer(vector, np.float32)).all())

    def missing(self, namespace: str, texts: Sequence[str]) -> list[str]:
        """The distinct texts not yet embedded in `namespace`, in order of first appearance."""
        distinct: dict[bytes, str] = {}
        for text in texts:
            distinct.setdefault(text_key(text), text)
        found = self.lookup("SELECT key FROM vectors WHERE space = ? AND key IN", list(distinct), first=[namespace])
        stored = {row[0] for row in found}
        return [text for key, text in distinct.items() if key not in stored]

    def get(self, namespace: str, texts: Sequence[str]) -> Embedded | None:
        """The vectors of all texts, in their order; None if any is missing.

        Raises DataError if the stored vectors differ in length.
        """
        keys = [text_key(text) for text in texts]
        query = "SELECT * FROM vectors WHERE space = ? AND key IN"
        rows = self.sound("vectors", self.lookup(query, list(dict.fromkeys(keys)), first=[namespace]))
        stored = {key: (vector, truncated) for _, key, vector, truncated in rows}
        if len(stored) < len(set(keys)):
            return None
        if not keys:
            return Embedded(np.empty((0, 0), np.float32), np.empty(0, np.bool_))
        if len({len(vector) for vector, _ in stored.values()}) > 1:
            raise DataError(f"{self.path}: vectors of one embedder differ in length; use another --store folder")
        vectors = np.frombuffer(b"".join(stored[key][0] for key in keys), np.float32).reshape(len(keys), -1)
        return Embedded(vectors, np.array([bool(stored[key][1]) for key in keys]))

    def put(self, namespace: str, texts: Sequence[str], embedded: Embedded) -> None:
        """Store vectors in one transaction; a text already stored keeps its vector."""
        rows = [
            (namespace, text_key(text), vector.astype(np.float32).tobytes(), int(cut))
            for text, vector, cut in zip(texts, embedded.vectors, embedded.truncated, strict=True)
        ]

        self.write(lambda db: self.insert(db, "vectors", rows, replace=False))


Pair = tuple[str, str]
"""A query and the text of a passage, including its context."""


class Scored(NamedTuple):
    """A reranker's output for a pair: the score, and the pair's part of the request's milliseconds and dollars."""

    score: float
    ms: float
    usd: float = 0.0


class ScoreCache(SqliteFile):
    """Scores of (query, text) pairs by reranker. Everything in this cache can be computed again."""

    TABLES: ClassVar = {"scores": ("space TEXT", "key BLOB", "score REAL", "ms REAL")}
    KEYS: ClassVar = {"scores": 2}

    def plausible(self, table: str, row: Row) -> bool:
        """Whether a row has a finite score and a finite duration."""
        return all(isinstance(value, float) and math.isfinite(value) for value in row[2:4])

    @contextlib.contextmanager
    def alone(self, namespace: str) -> Iterator[None]:
        """Lock this reranker for the store, so that no other launch pays for the same scores at the same time."""
        with locked(self.path.parent / "locks" / f"score-{namespace[:24]}"):
            yield

    def get(self, namespace: str, pairs: Sequence[Pair]) -> dict[Pair, Scored]:
        """The stored scores, by pair."""
        keys = {_pair_key(*pair): pair for pair in pairs}
        rows = self.lookup("SELECT * FROM scores WHERE space = ? AND key IN", list(keys), first=[namespace])
        return {keys[key]: Scored(score, ms) for _, key, score, ms in self.sound("scores", rows)}

    def put(self, namespace: str, scored: dict[Pair, Scored]) -> None:
        """Store scores in one transaction; a pair already stored keeps its score."""
        rows = [(namespace, _pair_key(*pair), float(found.score), float(found.ms)) for pair, found in scored.items()]
        self.write(lambda db: self.insert(db, "scores", rows, replace=False))


def _pair_key(query: str, text: str) -> bytes:
    return hashlib.sha256(text_key(query) + text_key(text)).digest()
