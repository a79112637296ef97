"""The door to MLflow: one tracking store, opened with care, and one experiment of it."""

import contextlib
import getpass
import math
import os
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from harness.core.errors import HarnessError
from harness.core.secrecy import bare_address, learn, redact
from harness.storage.files import file_name
from harness.storage.locks import locked
from harness.tracking.database import make_database
from harness.tracking.saved_views import View

# Set before mlflow is imported; each switches off traffic to outside or chatter on stdout.
QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_MODEL_CATALOG_URI": "",
    "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_TRACE_USE_ISOLATED_RANDOM_ID_GENERATOR": "true",
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    # The default metric writer thread would add a second to every run.
    "MLFLOW_ENABLE_ASYNC_LOGGING": "false",
}


COMMIT = "mlflow.source.git.commit"
"""The tag that holds the git commit of the working folder."""


def default_uri() -> str:
    """MLFLOW_TRACKING_URI, else `mlflow.db` in the working folder, which `mlflow ui` finds by itself."""
    return os.environ.get("MLFLOW_TRACKING_URI") or sqlite_uri(Path("mlflow.db").resolve())


def sqlite_uri(file: Path) -> str:
    """The tracking URI of a database file, whatever signs its path holds."""
    return f"sqlite:///{quote(str(file), safe=_PLAIN)}" if set("?%") & set(str(file)) else f"sqlite:///{file}"


_PLAIN = "".join(chr(code) for code in range(32, 127) if chr(code) not in "?%")


def sqlite_file(uri: str) -> Path | None:
    """The database file that a tracking URI names; None for a server."""
    if not uri.startswith("sqlite:///"):
        return None
    written = Path(uri.removeprefix("sqlite:///"))
    meant = [written, Path(unquote(str(written)))]
    # As it is written where that is there: not everybody writes %25 for a per cent sign.
    there = [file for file in meant if file.is_file()] or [file for file in meant if file.parent.is_dir()] or meant
    return there[0].resolve()


def _remove_stray(uri: str, file: Path) -> None:
    """Remove the folder that MLflow makes for the URI of a database as if it were a path."""
    stray = Path(uri.removeprefix("sqlite:///")).parent
    with contextlib.suppress(OSError):
        while stray.resolve() != file.parent and "%" in str(stray) and not any(stray.iterdir()):
            stray.rmdir()
            stray = stray.parent


class MlflowExperiment:
    """An MLflow experiment in a tracking store, made where it does not exist yet."""

    def __init__(self, experiment: str, uri: str | None) -> None:
        uri = uri or default_uri()
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        learn(uri)
        self._file = sqlite_file(uri)
        self._name = experiment
        self.uri = sqlite_uri(self._file) if self._file else uri
        with self.explained():
            self.client, self.experiment_id = self._opened()

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turn refusals of the tracking store into one line; what MLflow finds wrong with our later calls is a bug."""
        import mlflow.exceptions
        import sqlalchemy.exc

        opened = hasattr(self, "experiment_id")
        try:
            yield
        except (
            mlflow.exceptions.MlflowException,
            sqlalchemy.exc.SQLAlchemyError,
            sqlite3.Error,
            OSError,
            ImportError,
        ) as error:
            if opened and getattr(error, "error_code", "") == "INVALID_PARAMETER_VALUE":
                raise
            said = redact(" ".join(str(error).split()))[:200]
            raise HarnessError(
                f"MLflow: {self._file or redact(self.uri)} cannot be used: {said}; name another with --tracking, or "
                "leave MLflow out with --no-mlflow; what was worked out is kept"
            ) from error

    def _opened(self) -> tuple[Any, str]:
        import logging

        logging.getLogger("alembic").setLevel(logging.ERROR)
        logging.getLogger("mlflow").setLevel(logging.CRITICAL)
        from mlflow import MlflowClient

        def opened() -> tuple[Any, str]:
            client = MlflowClient(self.uri)  # runs the migrations of a new database
            found = client.get_experiment_by_name(self._name)
            if found is not None and found.lifecycle_stage == "deleted":
                client.restore_experiment(found.experiment_id)
            root = self._file.parent / "mlartifacts" / file_name(self._name) if self._file else None
            made = (
                found.experiment_id if found else client.create_experiment(self._name, root.as_uri() if root else None)
            )
            return client, str(made)

        if self._file is None:
            return opened()
        # Migrations of one database by two processes at once can ruin it; WAL makes batch logging twice as fast.
        with locked(self._lock):
            make_database(self._file, sqlite_uri)
            try:
                return opened()
            finally:
                _remove_stray(self.uri, self._file)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other launches from writing to the same SQLite file meanwhile.

        MLflow reads before it writes in one transaction; SQLite refuses the write at once, whatever the time-out, where
        another process has written in between.
        """
        if self._file is None:
            yield
            return
        with locked(self._lock):
            yield

    @property
    def _lock(self) -> Path:
        assert self._file is not None
        return self._file.with_name(self._file.name + ".lock")

    def search(self, query: str) -> Iterator[Any]:
        token = None
        while True:
            page = self.client.search_runs([self.experiment_id], query, max_results=500, page_token=token)
            yield from page
            token = page.token
            if not token:
                return

    def link(self, view: View) -> str:
        """The page of the UI that shows a saved view."""
        host = bare_address(self.uri) if self.uri.startswith(("http://", "https://")) else "http://127.0.0.1:5000"
        return f"{host.rstrip('/')}/#/experiments/{self.experiment_id}/runs?viewStateShareKey={view.key}{view.suffix}"


@lru_cache(maxsize=1)
def surroundings() -> dict[str, str]:
    """What MLflow's fluent API would fill in, and the low-level client does not."""
    tags = {"mlflow.source.type": "LOCAL", "harness_version": version("retrieval-harness")}
    with contextlib.suppress(OSError, KeyError):  # a container may run as a user without a name, or without git
        tags["mlflow.user"] = getpass.getuser()
    with contextlib.suppress(OSError):
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
        if commit.returncode == 0:
            tags[COMMIT] = commit.stdout.strip()
    return tags


def measured(values: Mapping[str, float], step: int = 0) -> list[Any]:
    """MLflow metrics, rounded; what is not a number is left out, since MLflow stores infinity as 1.8e308."""
    from mlflow.entities import Metric

    now = int(time.time() * 1000)
    return [Metric(name, _rounded(value), now, step) for name, value in values.items() if math.isfinite(value)]


def _rounded(value: float) -> float:
    """Four decimals; of dollars a query and other small values, three digits."""
    return round(value, 4) if abs(value) >= 0.01 else float(f"{value:.3g}")
