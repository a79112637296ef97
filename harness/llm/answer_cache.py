"""Answers in SQLite: every label at its own address, every call with what was said and what it cost."""

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
from harness.storage.sqlite_file import Row, SqliteFile, checksum, column_names


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


_UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What SQLite raises for a damaged file, and Python where SQLite quotes what is damaged."""


class AnswerCache(SqliteFile):
    """Labels are kept for good, call by call, so that nothing is paid twice.

    Failures are noted, never taken for results.
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

    saved: int = 0
    """Answers carried over from damaged files."""

    def recover(self, damaged: Path) -> None:
        """Answers are paid for: whatever can still be read from either end of a table is carried over."""
        labels: dict[str, Row] = {}
        calls: dict[str, Row] = {}
        for order in ("ASC", "DESC"):
            for table, key, found in (("labels", "address", labels), ("calls", "id", calls)):
                with contextlib.suppress(*_UNREADABLE), contextlib.closing(sqlite3.connect(damaged)) as old:
                    old.text_factory = lambda content: content.decode("utf-8", "replace")
                    width = len(self.TABLES[table])
                    for row in old.execute(f"SELECT * FROM {table} ORDER BY {key} {order}"):
                        whole = len(row) == width + 1 and row[-1] == checksum(row[:-1])
                        if whole or len(row) == width:  # of the time before there were checksums
                            found[row[0]] = row[:width]
        good = [row for row in labels.values() if _answer(row[1]) is not None]

        def carry_over(db: sqlite3.Connection) -> None:
            self.insert(db, "labels", good, replace=False)
            self.insert(db, "calls", calls.values(), replace=False)

        self.write(carry_over)
        self.saved += len(good)

    def plausible(self, table: str, row: Row) -> bool:
        return table != "labels" or _answer(row[1]) is not None

    def labels(self, addresses: Sequence[str], greatest: int = GREATEST_GRADE) -> dict[str, Label | Completion]:
        """The answers that are there, by address; one that was damaged, or cannot be an answer, is dropped.

        `greatest` is the greatest grade that whoever asked can have been given.
        """
        rows = self.sound("labels", self.lookup("SELECT * FROM labels WHERE address IN", addresses))
        found: dict[str, Label | Completion] = {}
        odd = []
        for row in rows:
            answer = _answer(row[1])
            if answer is None or (isinstance(answer, Label) and answer.grade > greatest):
                odd.append(row)
            else:
                found[row[0]] = answer
        if odd:
            self.drop("labels", odd)
        return found

    def failures(self, addresses: Sequence[str]) -> dict[str, Failure]:
        """What became of the latest attempt at addresses that have no answer."""
        rows = self.sound("failures", self.lookup("SELECT * FROM failures WHERE address IN", addresses))
        return {address: Failure(kind, detail, attempts) for address, kind, detail, attempts in rows}

    def _calls(self, addresses: Sequence[str]) -> tuple[list[str], dict[str, Call]]:
        """The call that each answer came with, and the calls by their ids; one that is damaged has no record."""
        rows = self.lookup("SELECT call FROM labels WHERE address IN", list(dict.fromkeys(addresses)))
        ids = [row[0] for row in rows]
        # A call is all of a row but the answer, which may be long: that is checked by itself when it is read.
        columns = ", ".join(column_names(self.TABLES["calls"]))
        found = self.lookup(f"SELECT {columns}, checksum FROM calls WHERE id IN", list(dict.fromkeys(ids)))
        return ids, {row[0]: Call(*row) for row in self.sound("calls", found)}

    def shares(self, addresses: Sequence[str]) -> dict[str, tuple[float, float]]:
        """The milliseconds and dollars of each answer: its share, among these addresses, of the call it came with."""
        distinct = list(dict.fromkeys(addresses))
        calls = dict(self.lookup("SELECT address, call FROM labels WHERE address IN", distinct))
        _, known = self._calls(distinct)
        together = Counter(calls.values())
        return {
            at: (known[call].ms / together[call], (known[call].usd or 0.0) / together[call])
            for at, call in calls.items()
            if call in known
        }

    def paid(self, addresses: Sequence[str]) -> tuple[float, int]:
        """Dollars spent on the calls that brought these answers, whenever that was, and the calls of unknown cost."""
        ids, known = self._calls(addresses)
        asked = {call for call in ids if call}
        priced = [one.usd for one in known.values() if one.usd is not None]
        return math.fsum(priced), len(asked) - len(priced)

    def served(self, addresses: Sequence[str]) -> dict[str, int]:
        """The models that gave these answers, as the server named them, with how many each gave."""
        ids, known = self._calls(addresses)
        return dict(sorted(Counter(known[call].served for call in ids if call in known).items()))

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

        row = call._replace(answer=zlib.compress(call.answer), served=redact(call.served))

        def insert(db: sqlite3.Connection) -> None:
            self.insert(db, "calls", [row], replace=True)
            self._insert(db, outcomes.items(), call.id)

        self.write(insert)

    def note(self, outcomes: Mapping[str, Outcome]) -> None:
        """What became of tasks, where it is not tied to one call."""

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
        """What is known of how a server wants this model to be asked."""
        query = "SELECT * FROM abilities WHERE endpoint = ? AND model = ?"
        rows = self.sound("abilities", self.guarded(lambda db: db.execute(query, (endpoint, model)).fetchall()))
        return dict(json.loads(rows[0][2])) if rows else None

    def keep_capabilities(self, endpoint: str, model: str, found: Mapping[str, Any]) -> None:
        """Remember how a server wants a model to be asked."""

        row = (endpoint, model, json.dumps(found))
        self.write(lambda db: self.insert(db, "abilities", [row], replace=True))


def _answer(text: Any) -> Label | Completion | None:
    """The answer that a text stands for; None where it is none."""
    try:
        return _decoded(text)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _encoded(answer: Label | Completion) -> str:
    return json.dumps(vars(answer), ensure_ascii=False)


def _decoded(text: str) -> Label | Completion:
    """The answer that a text stands for; raises ValueError, TypeError or KeyError for what is none."""
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
