"""The SQLite cache of reranker scores, so that each pair is computed and paid for once; and the keys of texts."""

import contextlib
import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

from harness.storage.locks import locked
from harness.storage.sqlite_file import SqliteFile
from harness.storage.sqlite_tables import Row


def text_key(text: str) -> bytes:
    """The sha256 of a text, 32 bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


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
    SHARED: ClassVar = ("scores",)

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
