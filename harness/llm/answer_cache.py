"""The answer cache in SQLite: labels by address, and a record of every call with its answer and cost."""

import contextlib
import json
import math
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from harness.core.secrecy import redact
from harness.llm.answers import GREATEST_GRADE, Completion, Failure, Label, Outcome
from harness.storage.sqlite_file import SqliteFile
from harness.storage.sqlite_tables import Row, checksum, column_names


class Call(NamedTuple):
    """The record of one request.

    `begun` is a Unix time in seconds, `ms` the duration in milliseconds. `served` is the model name that the server
    reported, `status` is "ok" or a failure kind. Token counts and `usd` (dollars) are None if unknown. `answer` is the
    response body, compressed with zlib in the database.
    """

    id: str
    endpoint: str
    model: str
    served: str
    status: str
    begun: float
    ms: float
    bytes_sent: int
    prompt_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    usd: float | None
    answer: bytes


_UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
"""Raised for a damaged file: by SQLite, or by Python if SQLite quotes damaged bytes in its error message."""


class AnswerCache(SqliteFile):
    """Stores answers permanently, one transaction per call, so that no answer is paid for twice.

    Failures are stored separately and never count as answers.
    """

    TABLES: ClassVar = {
        "labels": ("address TEXT", "label TEXT", "call TEXT"),
        "calls": (
            *("id TEXT", "endpoint TEXT", "model TEXT", "served TEXT", "status TEXT", "begun REAL", "ms REAL"),
            *("bytes_sent INTEGER", "prompt_tokens INTEGER", "output_tokens INTEGER", "cached_tokens INTEGER"),
            *("usd REAL", "answer BLOB"),
        ),
        "failures": ("address TEXT", "kind TEXT", "detail TEXT", "attempts INTEGER"),
        "abilities": ("endpoint TEXT", "model TEXT", "found TEXT"),
    }
    KEYS: ClassVar = {"abilities": 2}
    SHARED: ClassVar = ("labels", "calls")

    saved: int = 0
    """How many answers were recovered from damaged files."""

    def recover(self, damaged: Path) -> None:
        """Copy all readable labels and calls from a damaged file; each table is read from both ends."""
        labels: dict[str, Row] = {}
        calls: dict[str, Row] = {}
        for order in ("ASC", "DESC"):
            for table, key, found in (("labels", "address", labels), ("calls", "id", calls)):
                with contextlib.suppress(*_UNREADABLE), contextlib.closing(sqlite3.connect(damaged)) as old:
                    old.text_factory = lambda content: content.decode("utf-8", "replace")
                    width = len(self.TABLES[table])
                    for row in old.execute(f"SELECT * FROM {table} ORDER BY {key} {order}"):
                        intact = len(row) == width + 1 and row[-1] == checksum(row[:-1])
                        if intact or len(row) == width:  # older files have no checksum column
                            found[row[0]] = row[:width]
        good = [row for row in labels.values() if _answer(row[1]) is not None]

        def copy(db: sqlite3.Connection) -> None:
            self.insert(db, "labels", good, replace=False)
            self.insert(db, "calls", calls.values(), replace=False)

        self.write(copy)
        self.saved += len(good)

    def plausible(self, table: str, row: Row) -> bool:
        """Whether a row without a checksum is valid: a row of `labels` must hold a readable answer."""
        return table != "labels" or _answer(row[1]) is not None

    def labels(self, addresses: Sequence[str], greatest: int = GREATEST_GRADE) -> dict[str, Label | Completion]:
        """The stored answers by address; damaged or invalid ones are deleted.

        `greatest` is the highest grade that the prompter's schema allows; a label above it is invalid.
        """
        rows = self.sound("labels", self.lookup("SELECT * FROM labels WHERE address IN", addresses))
        found: dict[str, Label | Completion] = {}
        invalid = []
        for row in rows:
            answer = _answer(row[1])
            if answer is None or (isinstance(answer, Label) and answer.grade > greatest):
                invalid.append(row)
            else:
                found[row[0]] = answer
        if invalid:
            self.drop("labels", invalid)
        return found

    def failures(self, addresses: Sequence[str]) -> dict[str, Failure]:
        """The latest failure of each address that has no answer."""
        rows = self.sound("failures", self.lookup("SELECT * FROM failures WHERE address IN", addresses))
        return {address: Failure(kind, detail, attempts) for address, kind, detail, attempts in rows}

    def _calls(self, addresses: Sequence[str]) -> tuple[list[str], dict[str, Call]]:
        """The id of the call behind each answer, and the calls by id; damaged calls are left out."""
        rows = self.lookup("SELECT call FROM labels WHERE address IN", list(dict.fromkeys(addresses)))
        ids = [row[0] for row in rows]
        columns = ", ".join(column_names(self.TABLES["calls"]))
        found = self.lookup(f"SELECT {columns}, checksum FROM calls WHERE id IN", list(dict.fromkeys(ids)))
        return ids, {row[0]: Call(*row) for row in self.sound("calls", found)}

    def shares(self, addresses: Sequence[str]) -> dict[str, tuple[float, float]]:
        """Milliseconds and dollars per answer: those of its call, divided equally among the answers in `addresses`."""
        distinct = list(dict.fromkeys(addresses))
        calls = dict(self.lookup("SELECT address, call FROM labels WHERE address IN", distinct))
        _, known = self._calls(distinct)
        answers_per_call = Counter(calls.values())
        return {
            address: (known[call].ms / answers_per_call[call], (known[call].usd or 0.0) / answers_per_call[call])
            for address, call in calls.items()
            if call in known
        }

    def paid(self, addresses: Sequence[str]) -> tuple[float, int]:
        """Dollars spent on the calls behind these answers, in any launch, and the number of calls of unknown cost."""
        ids, known = self._calls(addresses)
        distinct = {call for call in ids if call}
        priced = [one.usd for one in known.values() if one.usd is not None]
        return math.fsum(priced), len(distinct) - len(priced)

    def served(self, addresses: Sequence[str]) -> dict[str, int]:
        """The number of answers per model, by the model names that the servers reported."""
        ids, known = self._calls(addresses)
        return dict(sorted(Counter(known[call].served for call in ids if call in known).items()))

    def bytes_per_token(self, endpoint: str, model: str) -> float | None:
        """The mean number of prompt bytes per token in the calls so far; None if there are none."""
        query = (
            "SELECT SUM(bytes_sent), SUM(prompt_tokens) FROM calls"
            " WHERE endpoint = ? AND model = ? AND prompt_tokens > 0"
        )
        sent, tokens = self.guarded(lambda db: db.execute(query, (endpoint, model)).fetchone())
        return sent / tokens if tokens else None

    def keep(self, call: Call, outcomes: Mapping[str, Outcome]) -> None:
        """Store a call with its answers and failures in one transaction. Existing answers are not replaced."""
        row = call._replace(answer=zlib.compress(call.answer), served=redact(call.served))

        def insert(db: sqlite3.Connection) -> None:
            self.insert(db, "calls", [row], replace=True)
            self._insert(db, outcomes.items(), call.id)

        self.write(insert)

    def note(self, outcomes: Mapping[str, Outcome]) -> None:
        """Store outcomes that belong to no single call."""
        self.write(lambda db: self._insert(db, outcomes.items(), ""))

    def _insert(self, db: sqlite3.Connection, outcomes: Iterable[tuple[str, Outcome]], call: str) -> None:
        for address, outcome in outcomes:
            if isinstance(outcome, Failure):
                row = (address, outcome.kind, redact(outcome.detail), outcome.attempts)
                self.insert(db, "failures", [row], replace=True)
            else:
                self.insert(db, "labels", [(address, redact(_encoded(outcome)), call)], replace=False)
                db.execute("DELETE FROM failures WHERE address = ?", (address,))

    def capabilities(self, endpoint: str, model: str) -> Mapping[str, Any] | None:
        """The stored capabilities of a model at a server; None if unknown."""
        query = "SELECT * FROM abilities WHERE endpoint = ? AND model = ?"
        rows = self.sound("abilities", self.guarded(lambda db: db.execute(query, (endpoint, model)).fetchall()))
        return dict(json.loads(rows[0][2])) if rows else None

    def keep_capabilities(self, endpoint: str, model: str, found: Mapping[str, Any]) -> None:
        """Store the capabilities of a model at a server, replacing earlier ones."""
        row = (endpoint, model, json.dumps(found))
        self.write(lambda db: self.insert(db, "abilities", [row], replace=True))


def _answer(text: Any) -> Label | Completion | None:
    """The answer encoded in a text; None if it is invalid."""
    try:
        return _decoded(text)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _encoded(answer: Label | Completion) -> str:
    return json.dumps(vars(answer), ensure_ascii=False)


def _decoded(text: str) -> Label | Completion:
    """The answer encoded in a text. Raises ValueError, TypeError or KeyError if it is invalid."""
    value = json.loads(text)
    if "texts" in value:
        texts = tuple(value["texts"])
        if not texts or not all(isinstance(one, str) for one in texts):
            raise ValueError("no texts")
        return Completion(texts)
    label = Label(**{**value, "flags": tuple(value["flags"])})
    if type(label.grade) is not int or not 0 <= label.grade <= GREATEST_GRADE:
        raise ValueError("no grade")
    if not all(isinstance(one, str) for one in (label.why, label.quote, label.by, *label.flags)):
        raise ValueError("no text")
    return label
