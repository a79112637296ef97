"""One experiment in an MLflow tracking store, opened safely and created if needed."""

import contextlib
import math
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from harness.core.environment import environment
from harness.core.errors import HarnessError
from harness.core.project import project_folder
from harness.core.secrecy import bare_address, learn, redact
from harness.storage.files import file_name
from harness.storage.locks import locked
from harness.tracking.database import make_database
from harness.tracking.saved_views import View
from harness.tracking.ui_port import FIRST, HOST, running_port

# Set before mlflow is imported; each prevents network traffic, output on stdout or delays.
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


def default_uri(base_dir: Path | None = None) -> str:
    """Return MLFLOW_TRACKING_URI, else `mlflow.db` in the project of an experiment.

    `base_dir` is the folder of the experiment, by default the working folder. `mlflow.db` in the working folder is also
    the default of `mlflow ui`.
    """
    folder = project_folder(base_dir or Path.cwd())
    return os.environ.get("MLFLOW_TRACKING_URI") or sqlite_uri(folder / "mlflow.db")


def sqlite_uri(file: Path) -> str:
    """Return the tracking URI of a database file; special characters in its path are escaped."""
    return f"sqlite:///{quote(str(file), safe=_PLAIN)}" if set("?%") & set(str(file)) else f"sqlite:///{file}"


_PLAIN = "".join(chr(code) for code in range(32, 127) if chr(code) not in "?%")


def sqlite_file(uri: str) -> Path | None:
    """Return the database file that a tracking URI names; None for a server."""
    if not uri.startswith("sqlite:///"):
        return None
    written = Path(uri.removeprefix("sqlite:///"))
    meant = [written, Path(unquote(str(written)))]
    # Prefer the path as written if it exists: not everyone escapes a per cent sign as %25.
    there = [file for file in meant if file.is_file()] or [file for file in meant if file.parent.is_dir()] or meant
    return there[0].resolve()


def _remove_stray(uri: str, file: Path) -> None:
    """Remove the folder that MLflow creates when it takes the URI of a database for a path."""
    stray = Path(uri.removeprefix("sqlite:///")).parent
    with contextlib.suppress(OSError):
        while stray.resolve() != file.parent and "%" in str(stray) and not any(stray.iterdir()):
            stray.rmdir()
            stray = stray.parent


class MlflowExperiment:
    """An MLflow experiment in a tracking store, created if it does not exist.

    `uri` defaults to `default_uri()`. Raises HarnessError if the store cannot be used.
    """

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
        """Convert errors of the tracking store to HarnessError.

        Invalid parameters after the store is open are a bug of the harness, so they are raised unchanged.
        """
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
            message = redact(" ".join(str(error).split()))[:200]
            raise HarnessError(
                f"MLflow: {self._file or redact(self.uri)} cannot be used: {message}; choose another store with "
                "--tracking, or run without MLflow (--no-mlflow); computed results are kept"
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
        # Two processes that migrate a database at the same time can corrupt it.
        with locked(self._lock):
            make_database(self._file, sqlite_uri)
            try:
                return opened()
            finally:
                _remove_stray(self.uri, self._file)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the SQLite file, so that no other launch writes to it meanwhile. No-op for a server.

        MLflow reads and then writes in one transaction. If another process writes in between, SQLite refuses the write
        immediately, regardless of the time-out.
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
        """Yield all runs of the experiment that match an MLflow filter."""
        token = None
        while True:
            page = self.client.search_runs([self.experiment_id], query, max_results=500, page_token=token)
            yield from page
            token = page.token
            if not token:
                return

    @property
    def where(self) -> str:
        """Where the runs can be seen, as text for the user."""
        return f"In MLflow, {'on its server' if self.uri.startswith('http') else 'after `harness ui`'}"

    def link(self, view: View) -> str:
        """Return the URL of a saved view in the MLflow UI; for a database file, of the one that runs here, if any."""
        return view_link(self._host, self.experiment_id, view.key, view.suffix)

    def artifact_link(self, run: str, path: str) -> str:
        """Return the URL of a file of a run in the MLflow UI."""
        return f"{self._host}/#/experiments/{self.experiment_id}/runs/{run}/artifacts/{path}"

    def traces_link(self, runs: Sequence[str]) -> str:
        """Return the URL of the page that compares two runs query by query, or shows one of them."""
        selected = f"selectedRunUuid={runs[0]}" + "".join(f"&compareToRunUuid={run}" for run in runs[1:2])
        return f"{self._host}/#/experiments/{self.experiment_id}/evaluation-runs?{selected}"

    @property
    def _host(self) -> str:
        if self.uri.startswith(("http://", "https://")):
            return bare_address(self.uri).rstrip("/")
        return f"http://{HOST}:{(running_port(self._file) if self._file else None) or FIRST}"


def view_link(host: str, experiment: str, key: str, suffix: str = "") -> str:
    """Return the URL of a saved view of an experiment."""
    # Without the workflow, MLflow shows its pages for traces in the sidebar.
    page = f"#/experiments/{experiment}/runs?workflowType=machine_learning&viewStateShareKey={key}{suffix}"
    return f"{host}/{page}"


def newest_launch(uri: str) -> str | None:
    """Return the id of the experiment with the newest launch in a store; None if there is none, or it is no store."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    import mlflow.exceptions
    from mlflow import MlflowClient

    with contextlib.suppress(mlflow.exceptions.MlflowException, OSError):
        client = MlflowClient(uri)
        experiments = [one.experiment_id for one in client.search_experiments(max_results=1000)]
        order = ["attributes.start_time DESC"]
        found = client.search_runs(experiments, "tags.kind = 'launch'", max_results=1, order_by=order)
        return str(found[0].info.experiment_id) if found else None
    return None


def surroundings() -> dict[str, str]:
    """Return the tags that MLflow's fluent API sets but its low-level client does not, and the harness version."""
    found = environment()
    tags = {"mlflow.source.type": "LOCAL", "harness_version": found.version}
    named = {"mlflow.user": found.user, COMMIT: found.commit}
    return tags | {name: value for name, value in named.items() if value}


def measured(values: Mapping[str, float], step: int = 0, when: int | None = None) -> list[Any]:
    """Return MLflow metrics with rounded values. NaN and infinity are left out: MLflow stores infinity as 1.8e308.

    `when` is their time in milliseconds since the epoch (default: now).
    """
    from mlflow.entities import Metric

    time_of = int(time.time() * 1000) if when is None else when
    return [Metric(name, _rounded(value), time_of, step) for name, value in values.items() if math.isfinite(value)]


def _rounded(value: float) -> float:
    """Round to four decimals, or to three significant digits below 0.01, such as dollars per query."""
    return round(value, 4) if abs(value) >= 0.01 else float(f"{value:.3g}")
