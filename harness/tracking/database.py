"""Create MLflow's SQLite file atomically, and set aside a file that an interrupted run left incomplete."""

import contextlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from harness.storage.files import free_name


def make_database(file: Path, uri: Callable[[Path], str]) -> None:
    """Create the database unless a usable one exists; `uri` returns the tracking URI of a file.

    The caller must hold its lock. MLflow creates about fifty tables one by one, and if it is killed in between, no
    later run can open the file. So the database is created under a temporary name and renamed when it is complete.
    """
    for left in file.parent.glob(f"{_escaped(file.name)}.new-*"):
        left.unlink(missing_ok=True)
    if file.exists() and not _unfinished(file):
        return
    if file.exists():
        _set_aside(file)
    temporary = file.with_name(f"{file.name}.new-{os.getpid()}")
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    store = SqlAlchemyStore(uri(temporary), (file.parent / "mlartifacts").as_uri())
    store.engine.dispose()
    with contextlib.closing(sqlite3.connect(temporary, timeout=60)) as database:
        # WAL makes batch logging twice as fast.
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for journal in ("-wal", "-shm", "-journal"):
        temporary.with_name(temporary.name + journal).unlink(missing_ok=True)
    temporary.replace(file)


def _unfinished(file: Path) -> bool:
    """Whether a database was left incomplete: it has no tables, or some are missing and it has no runs."""
    if file.is_dir():
        return False
    try:
        with contextlib.closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=60)) as database:
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if not tables:
                return True
            if "alembic_version" in tables and database.execute("SELECT 1 FROM alembic_version").fetchone():
                return not tables >= _ALL and not _has_runs(database, tables)
            return not _has_runs(database, tables)
    except sqlite3.DatabaseError:
        return False  # not a database: MLflow reports what is wrong with it


_ALL = {"experiments", "runs", "metrics", "latest_metrics", "params", "tags", "experiment_tags", "inputs", "datasets"}


def _has_runs(database: sqlite3.Connection, tables: set[str]) -> bool:
    return "runs" in tables and database.execute("SELECT 1 FROM runs LIMIT 1").fetchone() is not None


def _set_aside(file: Path) -> None:
    aside = free_name(file, "unfinished")
    file.replace(aside)
    for journal in ("-wal", "-shm", "-journal"):
        beside = file.with_name(file.name + journal)
        if beside.exists():
            beside.replace(aside.with_name(aside.name + journal))


def _escaped(name: str) -> str:
    return "".join(f"[{character}]" if character in "*?[" else character for character in name)
