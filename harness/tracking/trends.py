"""Nightly runs in MLflow: the accepted baseline, and a long-lived run per trial that gains a point each night."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.core.errors import DataError
from harness.evaluation.baseline import Baseline
from harness.tracking.mlflow_store import MlflowExperiment, measured, surroundings
from harness.tracking.saved_views import trend_view

_FILE = "accepted.json"


class ScheduledRun(NamedTuple):
    """One point of a trial's history: when, in milliseconds since the epoch, and values by metric key."""

    when: int
    values: Mapping[str, float]


class ScheduledRuns(MlflowExperiment):
    """Accepted baselines and trends of one MLflow experiment."""

    def accept(self, accepted: Baseline) -> str:
        """Keep a baseline as a run; the newest is in force. Gives the run's id."""
        with self.explained(), self.alone():
            tags = {
                **surroundings(),
                "kind": "accepted",
                "accepted_by": accepted.who,
                "accepted_at": accepted.when,
                "accepted_why": accepted.why,
                "launch": accepted.launch,
                "mlflow.note.content": f"Accepted by {accepted.who} on {accepted.when}: {accepted.why}",
            }
            run = self.client.create_run(self.experiment_id, tags=tags, run_name=f"accepted {accepted.when}")
            self._write(run.info.run_id, {_FILE: json.dumps(accepted.to_json(), ensure_ascii=False).encode()})
            self.client.set_terminated(run.info.run_id, "FINISHED")
            return str(run.info.run_id)

    def accepted(self) -> Baseline | None:
        """The baseline in force; None where none has been accepted."""
        with self.explained():
            query = "tags.kind = 'accepted' and attributes.status = 'FINISHED'"
            runs = sorted(self.search(query), key=lambda run: (run.info.start_time, run.info.run_id))
            if not runs:
                return None
            run_id = runs[-1].info.run_id
            with tempfile.TemporaryDirectory() as folder:
                text = Path(self.client.download_artifacts(run_id, _FILE, folder)).read_text(encoding="utf-8")
        where = f"MLflow run {run_id}: {_FILE}"
        try:
            return Baseline.from_json(json.loads(text), where=where)
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(f"{where}: cannot be read: {error}; accept a baseline anew") from None

    def log_run(
        self,
        launch: str,
        verdict: str,
        points: Mapping[str, Mapping[str, float]],
        files: Mapping[str, bytes],
        keys: Sequence[str],
    ) -> str:
        """Add a point to the trend of each trial, and the gate's files to the launch; gives the link to the trends.

        `points` gives values by metric key, by trial; `keys` are those that the saved view draws.
        """
        with self.explained(), self.alone():
            view = trend_view(keys)
            self.client.set_experiment_tag(self.experiment_id, f"mlflow.sharedViewState.{view.key}", view.encoded())
            for run in self.search(f"tags.kind = 'launch' and tags.launch = '{launch}'"):
                self.client.set_tag(run.info.run_id, "gate", verdict)
                self._write(run.info.run_id, files, "gate")
            for trial, values in points.items():
                run_id, nights = self._trend(trial)
                self.client.log_batch(run_id, metrics=measured(values, nights + 1))
                self.client.set_tag(run_id, "nights", str(nights + 1))
                self.client.set_tag(run_id, "gate", verdict)
            return self.link(view)

    def history(self, trials: Sequence[str], keys: Sequence[str]) -> dict[str, list[ScheduledRun]]:
        """The nights of each trial, the oldest first, with the values of `keys` that each has."""
        found: dict[str, list[ScheduledRun]] = {}
        with self.explained():
            for trial in trials:
                run = self._find(trial)
                steps: dict[int, tuple[int, dict[str, float]]] = {}
                for key in keys if run is not None else ():
                    for point in self.client.get_metric_history(run.info.run_id, key):
                        steps.setdefault(point.step, (point.timestamp, {}))[1][key] = point.value
                found[trial] = [ScheduledRun(*steps[step]) for step in sorted(steps)]
        return found

    def _find(self, trial: str) -> Any:
        return next((run for run in self.search("tags.kind = 'trend'") if run.data.tags.get("trial") == trial), None)

    def _trend(self, trial: str) -> tuple[str, int]:
        """The trial's trend run, made where there is none, and how many nights it has."""
        run = self._find(trial)
        if run is not None:
            return str(run.info.run_id), int(run.data.tags.get("nights", 0))
        tags = {**surroundings(), "kind": "trend", "trial": trial, "nights": "0"}
        made = self.client.create_run(self.experiment_id, tags=tags, run_name=f"trend · {trial}")
        return str(made.info.run_id), 0

    def _write(self, run_id: str, files: Mapping[str, bytes], folder: str | None = None) -> None:
        with tempfile.TemporaryDirectory() as drafts:
            for name, content in files.items():
                Path(drafts, name).write_bytes(content)
            self.client.log_artifacts(run_id, drafts, folder)
