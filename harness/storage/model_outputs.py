"""What models on this machine and elsewhere gave for texts, in SQLite, so that each text is paid for once."""

import contextlib
import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from harness.core.errors import DataError
from harness.core.records import Embedded
from harness.storage.locks import locked
from harness.storage.sqlite_file import Row, SqliteFile


def text_key(text: str) -> bytes:
    """sha256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class VectorCache(SqliteFile):
    """Vectors by embedder and text. It only ever holds what can be computed again."""

    TABLES: ClassVar = {"vectors": ("space TEXT", "key BLOB", "vector BLOB", "truncated INTEGER")}
    KEYS: ClassVar = {"vectors": 2}

    def plausible(self, table: str, row: Row) -> bool:
        vector = row[2]
        whole = isinstance(vector, bytes) and len(vector) > 0 and len(vector) % 4 == 0
        return whole and bool(np.isfinite(np.frombuffer(vector, np.float32)).all())

    def missing(self, namespace: str, texts: Sequence[str]) -> list[str]:
        """The distinct texts not yet embedded in `namespace`, in order of first appearance."""
        distinct: dict[bytes, str] = {}
        for text in texts:
            distinct.setdefault(text_key(text), text)
        found = self.lookup("SELECT key FROM vectors WHERE space = ? AND key IN", list(distinct), first=[namespace])
        stored = {row[0] for row in found}
        return [text for key, text in distinct.items() if key not in stored]

    def get(self, namespace: str, texts: Sequence[str]) -> Embedded | None:
        """Vectors for all texts, or None where any is missing."""
        keys = [text_key(text) for text in texts]
        query = "SELECT * FROM vectors WHERE space = ? AND key IN"
        rows = self.sound("vectors", self.lookup(query, list(dict.fromkeys(keys)), first=[namespace]))
        stored = {key: (vector, truncated) for _, key, vector, truncated in rows}
        if len(stored) < len(set(keys)):
            return None
        if not keys:
            return Embedded(np.empty((0, 0), np.float32), np.empty(0, np.bool_))
        if len({len(vector) for vector, _ in stored.values()}) > 1:
            raise DataError(f"{self.path}: holds vectors of several lengths for one embedder; `--store` another folder")
        vectors = np.frombuffer(b"".join(stored[key][0] for key in keys), np.float32).reshape(len(keys), -1)
        return Embedded(vectors, np.array([bool(stored[key][1]) for key in keys]))

    def put(self, namespace: str, texts: Sequence[str], embedded: Embedded) -> None:
        """Store vectors, one transaction; a text already there keeps the vector it has."""
        rows = [
            (namespace, text_key(text), vector.astype(np.float32).tobytes(), int(cut))
            for text, vector, cut in zip(texts, embedded.vectors, embedded.truncated, strict=True)
        ]

        self.write(lambda db: self.insert(db, "vectors", rows, replace=False))


Pair = tuple[str, str]
"""A query and the text of a passage, context included."""


class Scored(NamedTuple):
    """What a reranker gave a pair: the score, and its share of the milliseconds and dollars of the request."""

    score: float
    ms: float
    usd: float = 0.0


class ScoreCache(SqliteFile):
    """Scores of pairs of query and text by reranker. It only ever holds what can be asked again."""

    TABLES: ClassVar = {"scores": ("space TEXT", "key BLOB", "score REAL", "ms REAL")}
    KEYS: ClassVar = {"scores": 2}

    def plausible(self, table: str, row: Row) -> bool:
        return all(isinstance(value, float) and math.isfinite(value) for value in row[2:4])

    @contextlib.contextmanager
    def alone(self, namespace: str) -> Iterator[None]:
        """Keep other launches on the store from scoring with this reranker meanwhile, and paying for the same."""
        with locked(self.path.parent / "locks" / f"score-{namespace[:24]}"):
            yield

    def get(self, namespace: str, pairs: Sequence[Pair]) -> dict[Pair, Scored]:
        """The scores that are there, by pair."""
        keys = {_pair_key(*pair): pair for pair in pairs}
        rows = self.lookup("SELECT * FROM scores WHERE space = ? AND key IN", list(keys), first=[namespace])
        return {keys[key]: Scored(score, ms) for _, key, score, ms in self.sound("scores", rows)}

    def put(self, namespace: str, scored: dict[Pair, Scored]) -> None:
        """Store scores, one transaction; a pair already there keeps what it has."""
        rows = [(namespace, _pair_key(*pair), float(found.score), float(found.ms)) for pair, found in scored.items()]
        self.write(lambda db: self.insert(db, "scores", rows, replace=False))


def _pair_key(query: str, text: str) -> bytes:
    return hashlib.sha256(text_key(query) + text_key(text)).digest()
