"""A SQLite file in WAL mode that several processes share: errors in one line, damage detected, a version number."""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from harness.core.errors import StoreError
from harness.storage.files import explained, free_name
from harness.storage.locks import locked
from harness.storage.sqlite_tables import Row, Tables

T = TypeVar("T")

_CORRUPT = {
    *("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_SHORT_READ", "SQLITE_CORRUPT_VTAB", "SQLITE_SCHEMA"),
    *("SQLITE_CORRUPT_INDEX", "SQLITE_CORRUPT_SEQUENCE", "SQLITE_TOOBIG", "SQLITE_MISMATCH"),
}
_REFUSED = {
    "SQLITE_FULL": "the disk is full; free some space and start again, nothing finished is lost",
    "SQLITE_READONLY": "the file is read-only; name another folder with --store",
    "SQLITE_CANTOPEN": "the file cannot be opened; name another folder with --store",
    "SQLITE_BUSY": "another process has held it for over two minutes",
    "SQLITE_IOERR": "the disk cannot be read or written",
}


class SqliteFile:
    """Base class of the SQLite files of a store. A subclass declares its tables; every access goes through `guarded`.

    The last column of each table is `checksum`, over the columns before it: SQLite itself detects damage to the
    structure of a file, not to its values. `VERSION` is raised when tables change.
    """

    VERSION: ClassVar[int] = 1
    TABLES: ClassVar[Mapping[str, Sequence[str]]] = {}
    """The columns of each table, as in CREATE TABLE, without their checksum; the first `KEYS` of them are its key."""
    KEYS: ClassVar[Mapping[str, int]] = {}
    """The number of key columns of a table; 1 if it is not listed."""
    SHARED: ClassVar[Sequence[str]] = ()
    """The tables whose rows never change, which files of several machines can be merged by."""
    BLOCK: ClassVar[int] = 500
    """The maximum number of keys in one statement."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged = 0
        """The number of damaged files that were set aside."""
        self.damaged_rows = 0
        """The number of damaged rows that were dropped."""
        self._db: sqlite3.Connection | None = None

    def guarded(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return the result of `work` on the open file; a damaged file is set aside and `work` repeated on a new one.

        Raises StoreError if the file cannot be used, for example because the disk is full.
        """
        try:
            return work(self._open())
        except sqlite3.DatabaseError as error:
            name = getattr(error, "sqlite_errorname", "")
            if name not in _CORRUPT:
                refused = next((why for code, why in _REFUSED.items() if name.startswith(code)), None)
                if refused is None:
                    raise
                raise StoreError(f"store {self.path}: {refused}") from error
        except UnicodeDecodeError:
            pass  # SQLite quotes damaged bytes in its message, which Python cannot decode
        self.set_aside()
        return work(self._open())

    def write(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Run `work` as one transaction."""

        def transaction(db: sqlite3.Connection) -> None:
            with db:
                work(db)

        self.guarded(transaction)

    @property
    def tables(self) -> Tables:
        """The tables of the file."""
        return Tables(self.VERSION, self.TABLES, self.KEYS, self.plausible)

    def insert(self, db: sqlite3.Connection, table: str, rows: Iterable[Sequence[Any]], *, replace: bool) -> None:
        """Insert rows with their checksums. A stored row with the same key is kept unless `replace` is true."""
        self.tables.insert(db, table, rows, replace=replace)

    def sound(self, table: str, rows: Iterable[Row]) -> list[Row]:
        """Return complete rows of a table without their checksums; rows that do not match theirs are deleted."""
        tables, good, bad = self.tables, list[Row](), list[Row]()
        for row in rows:
            (good if tables.is_sound(table, row) else bad).append(row)
        if bad:
            self.drop(table, bad)
        return [row[:-1] for row in good]

    def drop(self, table: str, rows: Sequence[Row]) -> None:
        """Delete damaged rows."""
        self.write(lambda db: self.tables.delete(db, table, rows))
        self.damaged_rows += len(rows)

    def lookup(
        self, query: str, keys: Sequence[Any], *, first: Sequence[Any] = (), last: str = ""
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query that ends in `IN`, for many keys.

        `first` are the values of the placeholders before the `IN`, `last` is SQL that follows the keys.
        """
        rows: list[tuple[Any, ...]] = []
        for start in range(0, len(keys), self.BLOCK):
            block = keys[start : start + self.BLOCK]
            statement, values = f"{query} ({','.join('?' * len(block))}) {last}", [*first, *block]

            def fetch(db: sqlite3.Connection, text: str = statement, given: list[Any] = values) -> list[Any]:
                return db.execute(text, given).fetchall()

            rows += self.guarded(fetch)
        return rows

    def examine(self) -> None:
        """Check the file for damage before it is used, and set it aside if it is damaged."""
        if self.path.is_file():
            found = self.guarded(lambda db: db.execute("PRAGMA quick_check(1)").fetchone()[0])
            if found != "ok":
                self.set_aside()

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._disconnect()

    def _disconnect(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            with explained(self.path.parent):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                if self.path.is_dir():
                    self.set_aside()
            # One thread may open the file and another use it, but never two at once.
            db = sqlite3.connect(self.path, timeout=120, check_same_thread=False)
            # Damaged text that is not UTF-8 must be readable, so that its checksum can fail.
            db.text_factory = lambda content: content.decode("utf-8", "replace")
            self._db = db
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
            version = self.tables.version_of(db)
            if version > self.VERSION:
                self._disconnect()
                message = f"store {self.path}: is of version {version}, this harness knows {self.VERSION}"
                raise StoreError(f"{message}; upgrade the harness, or name another folder with --store")
            self.tables.prepare(db)
        return self._db

    def plausible(self, table: str, row: Row) -> bool:
        """Whether a row without a checksum can have been written by the harness."""
        return True

    def set_aside(self) -> None:
        """Rename the damaged file and its journals; the next call creates a new file."""
        self._disconnect()
        self.damaged += 1
        with locked(self.path.with_suffix(".lock")):
            aside = free_name(self.path, "damaged")
            if not self.path.exists():
                return  # another process has done it
            self.path.replace(aside)
            for journal in ("-wal", "-shm"):
                # A journal belongs to the file that it was written for.
                found = self.path.with_name(self.path.name + journal)
                if found.exists():
                    found.replace(aside.with_name(aside.name + journal))
        if aside.is_file():
            self.recover(aside)

    def recover(self, damaged: Path) -> None:
        """Copy what is still readable from a damaged file; a subclass does so if its content is worth it."""
