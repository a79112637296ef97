"""The SQLite file of what other systems answered, so that each query is asked once."""

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

from harness.storage.locks import locked
from harness.storage.model_outputs import text_key
from harness.storage.sqlite_file import SqliteFile
from harness.storage.sqlite_tables import Row


class Answered(NamedTuple):
    """The answer to a query as JSON text, the milliseconds that the client waited for it, and the number of requests.

    For a failure, `content` says what happened; `ms` is NaN if nothing was sent.
    """

    content: str
    ms: float
    requests: int


class SystemAnswers(SqliteFile):
    """Answers by system and query, and why there is none; failures are kept only until the query is answered."""

    TABLES: ClassVar = {
        "answers": ("space TEXT", "key BLOB", "content TEXT", "ms REAL", "requests INTEGER"),
        "failures": ("space TEXT", "key BLOB", "detail TEXT", "ms REAL", "requests INTEGER"),
    }
    KEYS: ClassVar = {"answers": 2, "failures": 2}
    SHARED: ClassVar = ("answers",)

    def plausible(self, table: str, row: Row) -> bool:
        """Whether a row has a text and a finite duration; of a query that was not sent, it has none."""
        timed = isinstance(row[3], float) and math.isfinite(row[3])
        return isinstance(row[2], str) and (timed or (table == "failures" and row[3] is None))

    @contextlib.contextmanager
    def alone(self, namespace: str) -> Iterator[None]:
        """Lock a system for the store, so that no other launch asks the same at the same time."""
        with locked(self.path.parent / "locks" / f"system-{namespace[:24]}"):
            yield

    def get(self, namespace: str, queries: Sequence[str]) -> dict[str, Answered]:
        """The stored answers, by query."""
        keys = {text_key(query): query for query in queries}
        rows = self.lookup("SELECT * FROM answers WHERE space = ? AND key IN", list(keys), first=[namespace])
        return {keys[row[1]]: Answered(*row[2:]) for row in self.sound("answers", rows)}

    def failures(self, namespace: str, queries: Sequence[str]) -> dict[str, Answered]:
        """Why queries were not answered when they were asked last, and how long the client waited, by query."""
        keys = {text_key(query): query for query in queries}
        rows = self.lookup("SELECT * FROM failures WHERE space = ? AND key IN", list(keys), first=[namespace])
        return {
            keys[key]: Answered(detail, math.nan if ms is None else ms, requests)
            for _, key, detail, ms, requests in self.sound("failures", rows)
        }

    def put(self, namespace: str, query: str, answer: Answered) -> None:
        """Store an answer; one that is stored already stays."""
        row = (namespace, text_key(query), answer.content, float(answer.ms), answer.requests)
        self.write(lambda db: self.insert(db, "answers", [row], replace=False))

    def put_failure(self, namespace: str, query: str, failure: Answered) -> None:
        """Keep why a query was not answered."""
        ms = None if math.isnan(failure.ms) else float(failure.ms)
        row = (namespace, text_key(query), failure.content, ms, failure.requests)
        self.write(lambda db: self.insert(db, "failures", [row], replace=True))
