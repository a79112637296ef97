"""The only door to MLflow: trials as flat runs, a run per launch, and saved views that answer the question."""

import contextlib
import getpass
import json
import math
import os
import re
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlparse

from harness.dataset import Manifest
from harness.errors import HarnessError
from harness.projection import TABLE, curves, metric_key, trial_metrics, write_files
from harness.results import TrialResult, withheld_last
from harness.store import digest, locked
from harness.views import View, views

# Set before mlflow is imported; each switches off traffic to outside or chatter on stdout.
QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_MODEL_CATALOG_URI": "",
    "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_TRACE_USE_ISOLATED_RANDOM_ID_GENERATOR": "true",
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",
    # The default metric writer thread would add a second to every run.
    "MLFLOW_ENABLE_ASYNC_LOGGING": "false",
}


def default_uri() -> str:
    """MLFLOW_TRACKING_URI, else `mlflow.db` in the working folder, which `mlflow ui` finds by itself."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{Path('mlflow.db').resolve()}"


class Logged(NamedTuple):
    """A trial's run in MLflow, and the launch it is tagged with."""

    run_id: str
    launch: str


class FinishedTrial(NamedTuple):
    """What is logged of a trial: its result, the headline metrics, where it came from, and its rows when asked for.

    `settings` is the trial as JSON, `source` the experiment file, `final` whether it opened the locked query set.
    """

    result: TrialResult
    metrics: Sequence[str]
    dataset: Manifest
    rows: Callable[[], Iterable[Mapping[str, Any]]]
    settings: str
    source: str
    final: bool


class FinishedLaunch(NamedTuple):
    """What is logged of a launch: its results, the headline metrics (the one to sort by first), and how it went.

    `begun` is when it started, in seconds since the epoch; `openings` how often the locked query set has been opened;
    `work` what had to be done, by stage; `spend` what language models were used for; `report` the files kept beside
    it, of which `comparison.md` becomes the note.
    """

    launch: str
    results: Sequence[TrialResult]
    metrics: Sequence[str]
    begun: float
    final: bool
    openings: int
    work: Mapping[str, int]
    spend: Mapping[str, float]
    report: Mapping[str, bytes]


class Tracker:
    """Writes launches to MLflow. MLflow is a projection: the store is the truth, and logging again changes nothing.

    A trial's run carries its `fingerprint`. One that is FINISHED is only tagged with the new launch; a half-written one
    is deleted and written again. Locks in the store keep two launches from writing the same trial twice.
    """

    def __init__(self, experiment: str, uri: str | None, store: Path) -> None:
        uri = uri or default_uri()
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        self._file = Path(uri.removeprefix("sqlite:///")).resolve() if uri.startswith("sqlite:///") else None
        uri = f"sqlite:///{self._file}" if self._file else uri
        self._name, self._uri = experiment, uri
        with self._explained():
            self._client, self.experiment_id = self._opened()
        self._place = store / "mlflow" / digest({"uri": uri, "experiment": self.experiment_id})[:16]
        with self._explained():
            self._logged = self._finished()
        self._inputs: dict[str, Any] = {}

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn refusals of the tracking store into one line; what MLflow finds wrong with our later calls is a bug."""
        import mlflow.exceptions
        import sqlalchemy.exc

        opened = hasattr(self, "experiment_id")
        try:
            yield
        except (mlflow.exceptions.MlflowException, sqlalchemy.exc.SQLAlchemyError, sqlite3.Error, OSError) as error:
            if opened and getattr(error, "error_code", "") == "INVALID_PARAMETER_VALUE":
                raise
            raise HarnessError(
                f"MLflow: {self._uri} cannot be used: {' '.join(str(error).split())[:200]}; name another with "
                "--tracking, or leave MLflow out with --no-mlflow; what was worked out is kept"
            ) from error

    def _opened(self) -> tuple[Any, str]:
        import logging

        logging.getLogger("alembic").setLevel(logging.ERROR)
        logging.getLogger("mlflow").setLevel(logging.CRITICAL)
        from mlflow import MlflowClient

        def opened() -> tuple[Any, str]:
            client = MlflowClient(self._uri)  # runs the migrations of a new database
            found = client.get_experiment_by_name(self._name)
            if found is not None and found.lifecycle_stage == "deleted":
                client.restore_experiment(found.experiment_id)
            folder = re.sub(r"[^\w.-]+", "-", self._name)
            root = self._file.parent / "mlartifacts" / folder if self._file else None
            made = (
                found.experiment_id if found else client.create_experiment(self._name, root.as_uri() if root else None)
            )
            return client, str(made)

        if self._file is None:
            return opened()
        # Migrations of one database by two processes at once can ruin it; WAL makes batch logging twice as fast.
        with locked(self._lock):
            client, experiment_id = opened()
            with contextlib.closing(sqlite3.connect(self._file, timeout=60)) as database:
                database.execute("PRAGMA journal_mode=WAL")
            return client, experiment_id

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
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

    def _search(self, query: str) -> Iterator[Any]:
        token = None
        while True:
            page = self._client.search_runs([self.experiment_id], query, max_results=500, page_token=token)
            yield from page
            token = page.token
            if not token:
                return

    def _finished(self) -> dict[str, Logged]:
        """Trials already in MLflow, by fingerprint."""
        runs = self._search("tags.kind = 'trial' and attributes.status = 'FINISHED'")
        return {run.data.tags["fingerprint"]: Logged(run.info.run_id, run.data.tags.get("launch", "")) for run in runs}

    def log_trial(self, trial: FinishedTrial, launch: str) -> None:
        """Log a trial once; its rows are asked for only where it is not logged yet."""
        result = trial.result
        known = self._logged.get(result.fingerprint)
        if known is None:
            with self._explained(), self._alone(), locked(self._place / f"{result.fingerprint}.lock"):
                known = self._of_another_launch(result.fingerprint)
                if known is None:
                    self._delete_unfinished(result.fingerprint)
                    run_id = self._write_trial(trial, launch)
                    (self._place / result.fingerprint).write_text(run_id)
                    known = Logged(run_id, launch)
        if known.launch != launch:
            with self._explained(), self._alone():
                self._client.set_tag(known.run_id, "launch", launch)
                self._client.set_tag(known.run_id, "mlflow.runName", result.name)

    def _of_another_launch(self, fingerprint: str) -> Logged | None:
        """The run another launch has written since this one began."""
        note = self._place / fingerprint
        if not note.is_file():
            return None
        found = list(self._search(f"tags.fingerprint = '{fingerprint}' and attributes.status = 'FINISHED'"))
        return Logged(found[0].info.run_id, found[0].data.tags.get("launch", "")) if found else None

    def _delete_unfinished(self, fingerprint: str) -> None:
        for run in self._search(f"tags.fingerprint = '{fingerprint}' and attributes.status != 'FINISHED'"):
            self._client.delete_run(run.info.run_id)

    def _write_trial(self, trial: FinishedTrial, launch: str) -> str:
        from mlflow.entities import DatasetInput, InputTag, Param

        result = trial.result
        tags = {
            **_surroundings(),
            "mlflow.source.name": trial.source,
            "kind": "trial",
            "launch": launch,
            "fingerprint": result.fingerprint,
            "final": str(trial.final).lower(),
            "dataset_digest": trial.dataset.corpus.sha256[:36],
            "mlflow.loggedArtifacts": json.dumps([{"path": TABLE, "type": "table"}]),
            **{f"{slot}.source_sha": part["source"] for slot, part in _own_parts(result.settings)},
        }
        run_id: str = self._client.create_run(self.experiment_id, run_name=result.name, tags=tags).info.run_id
        measured = _measured(trial_metrics(result, trial.metrics))
        for curve, points in curves(result).items():
            for step, value in points:
                measured += _measured({f"curve/{curve}": value}, step)
        params = [Param(name, value) for name, value in result.params.items()]
        self._client.log_batch(run_id, metrics=measured, params=params)
        self._client.log_inputs(
            run_id, [DatasetInput(self._input(trial.dataset, result), [InputTag("mlflow.data.context", "eval")])]
        )
        with tempfile.TemporaryDirectory() as folder:
            write_files(Path(folder), result, trial.metrics, list(trial.rows()), trial.settings)
            self._client.log_artifacts(run_id, folder)
        self._client.set_terminated(run_id, "FINISHED")  # the last write: only now does the run count
        return run_id

    def _input(self, manifest: Manifest, result: TrialResult) -> Any:
        from mlflow.entities import Dataset

        queries = result.params["queries"]
        if queries not in self._inputs:
            hashes = {"corpus": manifest.corpus.sha256, "queries": manifest.query_set(queries).sha256}
            profile = json.dumps({"num_queries": len(result.queries), "num_evidence": sum(map(len, result.fates))})
            source = json.dumps({"uri": manifest.root.as_posix()})
            self._inputs[queries] = Dataset(
                f"{manifest.name}@{queries}", digest(hashes)[:36], "local", source, json.dumps(hashes), profile
            )
        return self._inputs[queries]

    def log_launch(self, finished: FinishedLaunch) -> dict[str, str]:
        """Log the launch itself and write the saved views; gives their links."""
        with self._explained(), self._alone():
            self._write_launch(finished)
            return self._put_views(finished)

    def _write_launch(self, finished: FinishedLaunch) -> None:
        launch, results, metrics, begun, final, openings, work, spend, report = finished
        top = max(results, key=lambda result: (withheld_last(result.mean(metrics[0])), result.name))
        tags = {
            **_surroundings(),
            "kind": "launch",
            "launch": launch,
            "final": str(final).lower(),
            "test_openings": str(openings),
            "trials": str(len(results)),
            "top_trial": top.name,
        }
        run = self._client.create_run(self.experiment_id, round(begun * 1000), tags, run_name=f"launch {launch}")
        run_id = run.info.run_id
        values = {metric_key(name): top.mean(name) for name in metrics} | {
            f"work/{stage}": n for stage, n in work.items()
        }
        values |= {f"llm/{name}": value for name, value in spend.items()}
        self._client.log_batch(run_id, metrics=_measured(values))
        with tempfile.TemporaryDirectory() as folder:
            for name, content in report.items():
                Path(folder, name).write_bytes(content)
            self._client.log_artifacts(run_id, folder)
        self._client.set_experiment_tag(self.experiment_id, "test_openings", str(openings))
        self._client.set_tag(run_id, "mlflow.note.content", report.get("comparison.md", b"").decode()[:8000])
        self._client.set_terminated(run_id, "FINISHED")

    def _put_views(self, finished: FinishedLaunch) -> dict[str, str]:
        links: dict[str, str] = {}
        for view in views(finished.launch, finished.results, [metric_key(name) for name in finished.metrics]):
            self._client.set_experiment_tag(self.experiment_id, f"mlflow.sharedViewState.{view.key}", view.encoded())
            links[view.name] = self._link(view)
        return links

    def _link(self, view: View) -> str:
        host = self._uri if urlparse(self._uri).scheme in ("http", "https") else "http://127.0.0.1:5000"
        return f"{host.rstrip('/')}/#/experiments/{self.experiment_id}/runs?viewStateShareKey={view.key}{view.suffix}"


def _own_parts(settings: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for slot, part in settings.items():
        if isinstance(part, Mapping) and "source" in part:
            yield slot, part


@lru_cache(maxsize=1)
def _surroundings() -> dict[str, str]:
    """What MLflow's fluent API would fill in, and the low-level client does not."""
    tags = {"mlflow.source.type": "LOCAL", "harness_version": version("retrieval-harness")}
    with contextlib.suppress(OSError, KeyError):  # a container may run as a user without a name, or without git
        tags["mlflow.user"] = getpass.getuser()
    with contextlib.suppress(OSError):
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
        if commit.returncode == 0:
            tags["mlflow.source.git.commit"] = commit.stdout.strip()
    return tags


def _measured(values: Mapping[str, float], step: int = 0) -> list[Any]:
    """MLflow metrics, rounded; what is not a number is left out, since MLflow stores infinity as 1.8e308."""
    from mlflow.entities import Metric

    now = int(time.time() * 1000)
    return [Metric(name, _rounded(value), now, step) for name, value in values.items() if math.isfinite(value)]


def _rounded(value: float) -> float:
    """Four decimals; of dollars a query and other small values, three digits."""
    return round(value, 4) if abs(value) >= 0.01 else float(f"{value:.3g}")
