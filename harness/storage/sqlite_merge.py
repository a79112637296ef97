"""Files of several machines as one: each machine adds the rows of the others to its own file."""

import sqlite3
from functools import partial
from pathlib import Path

from harness.storage.sqlite_file import SqliteFile
from harness.storage.sqlite_tables import Row


def fingerprint(file: SqliteFile) -> list[int]:
    """The number of rows and the sum of their checksums, for each of the tables that machines share."""
    columns = (f"(SELECT {what} FROM {table})" for table in file.SHARED for what in ("COUNT(*)", "TOTAL(checksum)"))
    query = f"SELECT {', '.join(columns)}"
    return [int(value) for value in file.guarded(lambda db: db.execute(query).fetchone())]


def merge(file: SqliteFile, other: Path) -> None:
    """Add the intact rows of the shared tables of another file; a row with the key of a stored one is left out."""
    found = type(file)(other)
    for table in file.SHARED:
        rows = found.sound(table, found.guarded(partial(_every_row, table=table)))
        file.write(partial(file.insert, table=table, rows=rows, replace=False))
    found.close()


def snapshot(file: SqliteFile) -> bytes:
    """The content of a file at one moment, as the bytes of a SQLite file."""
    return file.guarded(lambda db: bytes(db.serialize()))


def _every_row(db: sqlite3.Connection, table: str) -> list[Row]:
    return db.execute(f"SELECT * FROM {table}").fetchall()
