"""One SQLite file in WAL mode that many processes may use: refusals told in one line, a damaged file set aside."""

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from harness.errors import StoreError
from harness.store import explained, locked

T = TypeVar("T")

_CORRUPT = {"SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_SHORT_READ", "SQLITE_CORRUPT_VTAB", "SQLITE_SCHEMA"}
_REFUSED = {
    "SQLITE_FULL": "the disk is full; free some space and start again, nothing finished is lost",
    "SQLITE_READONLY": "the file is read-only; name another folder with --store",
    "SQLITE_CANTOPEN": "the file cannot be opened; name another folder with --store",
    "SQLITE_BUSY": "another process has held it for over two minutes",
}


class SqliteFile:
    """A subclass declares its tables; every access goes through `guarded`."""

    SCHEMA: ClassVar[Sequence[str]] = ()
    BLOCK: ClassVar[int] = 500
    """Values looked up with one statement."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged = 0
        """How often a damaged file was found and set aside."""
        self._db: sqlite3.Connection | None = None

    def guarded(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """`work` on the open file; where it turns out damaged, on a new one. Raises StoreError where refused."""
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

    def write(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """`work` as one transaction."""

        def transaction(db: sqlite3.Connection) -> None:
            with db:
                work(db)

        self.guarded(transaction)

    def lookup(
        self, query: str, keys: Sequence[Any], *, first: Sequence[Any] = (), last: str = ""
    ) -> list[tuple[Any, ...]]:
        """The rows of a query that ends in `IN`, for many keys; `first` are the values of what stands before."""
        rows: list[tuple[Any, ...]] = []
        for start in range(0, len(keys), self.BLOCK):
            block = keys[start : start + self.BLOCK]
            statement, values = f"{query} ({','.join('?' * len(block))}) {last}", [*first, *block]

            def fetch(db: sqlite3.Connection, text: str = statement, given: list[Any] = values) -> list[Any]:
                return db.execute(text, given).fetchall()

            rows += self.guarded(fetch)
        return rows

    def examine(self) -> None:
        """Look for damage now rather than in the middle of the work, and set a damaged file aside."""
        if self.path.is_file():
            sound = self.guarded(lambda db: db.execute("PRAGMA quick_check(1)").fetchone()[0])
            if sound != "ok":
                self._set_aside()

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            with explained(self.path.parent):
                self.path.parent.mkdir(parents=True, exist_ok=True)
            # The thread that opens it may differ from the one that goes on with it; two never use it at once.
            db = sqlite3.connect(self.path, timeout=120, check_same_thread=False)
            self._db = db
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
            for table in self.SCHEMA:
                db.execute(table)
        return self._db

    def _set_aside(self) -> None:
        """Rename the damaged file and its journals."""
        self.close()
        self.damaged += 1
        with locked(self.path.with_suffix(".lock")):
            number = 1 + len(list(self.path.parent.glob(f"{self.path.name}.damaged-?")))
            aside = self.path.with_name(f"{self.path.name}.damaged-{number}")
            self.path.replace(aside)
            for journal in ("-wal", "-shm"):
                # What a journal holds belongs to the file it was written for.
                beside = self.path.with_name(self.path.name + journal)
                if beside.exists():
                    beside.replace(aside.with_name(aside.name + journal))
        self.salvage(aside)

    def salvage(self, damaged: Path) -> None:
        """Carry over what can still be read of a damaged file, where it is worth it."""
