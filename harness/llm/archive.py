"""Answers in SQLite: every label at its own address, every call with what was said and what it cost."""

import contextlib
import json
import math
import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.llm.outcome import Failure, Label, Outcome, Written
from harness.sqlite_file import SqliteFile


class Call(NamedTuple):
    """One request as it is kept: where, to which model, when, how it went, and the answer as it came."""

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


class Archive(SqliteFile):
    """Labels are kept for good, call by call, so that nothing is paid twice.

    Failures are noted, never taken for results.
    """

    SCHEMA = (
        "CREATE TABLE IF NOT EXISTS labels (address TEXT PRIMARY KEY, label TEXT NOT NULL, call TEXT NOT NULL)"
        " WITHOUT ROWID",
        "CREATE TABLE IF NOT EXISTS calls (id TEXT PRIMARY KEY, endpoint TEXT, model TEXT, served TEXT, status TEXT,"
        " begun REAL, ms REAL, bytes_sent INTEGER, prompt_tokens INTEGER, output_tokens INTEGER, cached_tokens INTEGER,"
        " usd REAL, answer BLOB)",
        "CREATE TABLE IF NOT EXISTS failures (address TEXT PRIMARY KEY, kind TEXT, detail TEXT, attempts INTEGER)"
        " WITHOUT ROWID",
        "CREATE TABLE IF NOT EXISTS abilities (endpoint TEXT, model TEXT, found TEXT, PRIMARY KEY (endpoint, model))",
    )

    saved: int = 0
    """Answers carried over from damaged files."""

    def salvage(self, damaged: Path) -> None:
        """Answers are paid for: whatever can still be read from either end of a table is carried over."""
        rows: dict[str, tuple[Any, ...]] = {}
        calls: dict[str, tuple[Any, ...]] = {}
        for order in ("ASC", "DESC"):
            for query, found in (
                (f"SELECT address, label, call FROM labels ORDER BY address {order}", rows),
                (f"SELECT * FROM calls ORDER BY rowid {order}", calls),
            ):
                with contextlib.suppress(sqlite3.DatabaseError), contextlib.closing(sqlite3.connect(damaged)) as old:
                    for row in old.execute(query):
                        found[row[0]] = row
        good = [row for row in rows.values() if _readable(row[1])]

        def carry_over(db: sqlite3.Connection) -> None:
            db.executemany("INSERT OR IGNORE INTO labels VALUES (?, ?, ?)", good)
            marks = ",".join("?" * len(Call._fields))
            db.executemany(f"INSERT OR IGNORE INTO calls VALUES ({marks})", calls.values())

        self.write(carry_over)
        self.saved += len(good)

    def labels(self, addresses: Sequence[str]) -> dict[str, Label | Written]:
        """The answers that are there, by address."""
        rows = self.lookup("SELECT address, label FROM labels WHERE address IN", addresses)
        return {address: _decoded(text) for address, text in rows}

    def failures(self, addresses: Sequence[str]) -> dict[str, Failure]:
        """What became of the latest attempt at addresses that have no answer."""
        rows = self.lookup("SELECT address, kind, detail, attempts FROM failures WHERE address IN", addresses)
        return {address: Failure(kind, detail, attempts) for address, kind, detail, attempts in rows}

    def shares(self, addresses: Sequence[str]) -> dict[str, tuple[float, float]]:
        """The milliseconds and dollars of each answer: its share, among these addresses, of the call it came with."""
        query = "SELECT l.address, l.call, c.ms, c.usd FROM labels l JOIN calls c ON c.id = l.call WHERE l.address IN"
        rows = self.lookup(query, list(dict.fromkeys(addresses)))
        together: dict[str, int] = {}
        for _, call, _, _ in rows:
            together[call] = together.get(call, 0) + 1
        return {at: (ms / together[call], (usd or 0.0) / together[call]) for at, call, ms, usd in rows}

    def paid(self, addresses: Sequence[str]) -> tuple[float, int]:
        """Dollars spent on the calls that brought these answers, whenever that was, and the calls of unknown cost."""
        query = "SELECT DISTINCT l.call, c.usd FROM labels l JOIN calls c ON c.id = l.call WHERE l.address IN"
        by_call = dict(self.lookup(query, addresses))
        known = [usd for usd in by_call.values() if usd is not None]
        return math.fsum(known), len(by_call) - len(known)

    def served(self, addresses: Sequence[str]) -> dict[str, int]:
        """The models that gave these answers, as the server named them, with how many each gave."""
        query = "SELECT c.served, COUNT(*) FROM labels l JOIN calls c ON c.id = l.call WHERE l.address IN"
        counts: dict[str, int] = {}
        for served, count in self.lookup(query, addresses, last="GROUP BY c.served"):
            counts[served] = counts.get(served, 0) + count
        return counts

    def bytes_per_token(self, endpoint: str, model: str) -> float | None:
        """How many bytes of a prompt made a token so far; None where nothing has been sent."""
        query = (
            "SELECT SUM(bytes_sent), SUM(prompt_tokens) FROM calls"
            " WHERE endpoint = ? AND model = ? AND prompt_tokens > 0"
        )
        sent, tokens = self.guarded(lambda db: db.execute(query, (endpoint, model)).fetchone())
        return sent / tokens if tokens else None

    def keep(self, call: Call, outcomes: Mapping[str, Outcome]) -> None:
        """One transaction: the call, the answers it brought, the failures it left. An answer already there stays."""

        row = call._replace(answer=zlib.compress(call.answer))

        def insert(db: sqlite3.Connection) -> None:
            db.execute(f"INSERT OR REPLACE INTO calls VALUES ({','.join('?' * len(row))})", row)
            self._insert(db, outcomes.items(), call.id)

        self.write(insert)

    def note(self, outcomes: Mapping[str, Outcome]) -> None:
        """What became of tasks, where it is not tied to one call."""

        self.write(lambda db: self._insert(db, outcomes.items(), ""))

    @staticmethod
    def _insert(db: sqlite3.Connection, outcomes: Iterable[tuple[str, Outcome]], call: str) -> None:
        for address, outcome in outcomes:
            if isinstance(outcome, Failure):
                row = (address, outcome.kind, outcome.detail, outcome.attempts)
                db.execute("INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?)", row)
            else:
                db.execute("INSERT OR IGNORE INTO labels VALUES (?, ?, ?)", (address, _encoded(outcome), call))
                db.execute("DELETE FROM failures WHERE address = ?", (address,))

    def abilities(self, endpoint: str, model: str) -> Mapping[str, Any] | None:
        """What is known of how a server wants this model to be asked."""
        query = "SELECT found FROM abilities WHERE endpoint = ? AND model = ?"
        row = self.guarded(lambda db: db.execute(query, (endpoint, model)).fetchone())
        return dict(json.loads(row[0])) if row else None

    def keep_abilities(self, endpoint: str, model: str, found: Mapping[str, Any]) -> None:
        """Remember how a server wants a model to be asked."""

        row = (endpoint, model, json.dumps(found))
        self.write(lambda db: db.execute("INSERT OR REPLACE INTO abilities VALUES (?, ?, ?)", row))


def _readable(label: Any) -> bool:
    try:
        _decoded(label)
    except (ValueError, TypeError, KeyError):
        return False
    return True


def _encoded(answer: Label | Written) -> str:
    return json.dumps(vars(answer), ensure_ascii=False)


def _decoded(text: str) -> Label | Written:
    value = json.loads(text)
    if "texts" in value:
        return Written(tuple(value["texts"]))
    return Label(**{**value, "flags": tuple(value["flags"])})
