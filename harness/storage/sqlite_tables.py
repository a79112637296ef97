"""The tables of a SQLite file: each row has a checksum, and the file a version."""

import sqlite3
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = tuple[Any, ...]


class ForeignError(sqlite3.DatabaseError):
    """A file of another program whose tables have the same names."""

    sqlite_errorname = "SQLITE_CORRUPT"


def column_names(columns: Sequence[str]) -> list[str]:
    """The names in column definitions such as `score REAL`."""
    return [column.split()[0] for column in columns]


def checksum(values: Iterable[Any]) -> int:
    """CRC-32 of the values of a row, of any type that SQLite returns."""
    total = 0
    for value in values:
        if isinstance(value, bytes):
            part = value
        elif isinstance(value, float):
            part = struct.pack("<d", value)
        else:
            part = str(value).encode("utf-8", "surrogatepass")
        total = zlib.crc32(part, zlib.crc32(len(part).to_bytes(8, "little"), total))
    return total


@dataclass(frozen=True)
class Tables:
    """The tables of a file: their version, their columns without checksums, and the number of key columns of each.

    `plausible` says whether a row without a checksum can have been written by the harness.
    """

    version: int
    columns: Mapping[str, Sequence[str]]
    keys: Mapping[str, int]
    plausible: Callable[[str, Row], bool]

    def version_of(self, db: sqlite3.Connection) -> int:
        """The version of a file. Raises ForeignError if it has views or triggers."""
        if db.execute("SELECT 1 FROM sqlite_master WHERE type IN ('view', 'trigger')").fetchone():
            raise ForeignError("views and triggers, which are not ours")
        return int(db.execute("PRAGMA user_version").fetchone()[0])

    def prepare(self, db: sqlite3.Connection) -> None:
        """Create the tables, or upgrade those of an older version."""
        current = self.version_of(db) == self.version
        if current and all(
            self._found(db, table) == [*column_names(columns), "checksum"] for table, columns in self.columns.items()
        ):
            return
        db.execute("BEGIN IMMEDIATE")  # another process may be doing the same
        with db:
            for table, columns in self.columns.items():
                names = column_names(columns)
                found = self._found(db, table)
                if found == names:
                    self._add_checksums(db, table)
                elif found and found != [*names, "checksum"]:
                    raise ForeignError(f"table {table} has the columns {found}")
                self._create(db, table)
            db.execute(f"PRAGMA user_version={self.version}")

    def insert(self, db: sqlite3.Connection, table: str, rows: Iterable[Sequence[Any]], *, replace: bool) -> None:
        """Insert rows with their checksums. A stored row with the same key is kept unless `replace` is true."""
        marks = ",".join("?" * (len(self.columns[table]) + 1))
        statement = f"INSERT OR {'REPLACE' if replace else 'IGNORE'} INTO {table} VALUES ({marks})"
        db.executemany(statement, ((*row, checksum(row)) for row in rows))

    def is_sound(self, table: str, row: Row) -> bool:
        """Whether a complete row matches its checksum, and its texts are texts: a flipped bit can make them bytes."""
        kinds = zip(self.columns[table], row[:-1], strict=True)
        texts = all(isinstance(value, str | None) for column, value in kinds if " TEXT" in column)
        return texts and bool(row[-1] == checksum(row[:-1]))

    def delete(self, db: sqlite3.Connection, table: str, rows: Sequence[Row]) -> None:
        """Delete rows by their keys."""
        keys = self.keys.get(table, 1)
        where = " AND ".join(f"{name} IS ?" for name in column_names(self.columns[table][:keys]))
        db.executemany(f"DELETE FROM {table} WHERE {where}", [row[:keys] for row in rows])

    def _found(self, db: sqlite3.Connection, table: str) -> list[str]:
        return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]

    def _create(self, db: sqlite3.Connection, table: str) -> None:
        key = ", ".join(column_names(self.columns[table][: self.keys.get(table, 1)]))
        columns = ", ".join((*self.columns[table], "checksum INTEGER NOT NULL", f"PRIMARY KEY ({key})"))
        db.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns}) WITHOUT ROWID")

    def _add_checksums(self, db: sqlite3.Connection, table: str) -> None:
        """Rewrite a table of a version without checksums; implausible rows are left out."""
        rows = [row for row in db.execute(f"SELECT * FROM {table}").fetchall() if self.plausible(table, row)]
        db.execute(f"DROP TABLE {table}")
        self._create(db, table)
        self.insert(db, table, rows, replace=False)
