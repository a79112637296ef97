"""Scheduled runs in MLflow: accepted baselines, and a run per trial to which each scheduled run adds a point."""

import contextlib
import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.core.errors import DataError
from harness.evaluation.baseline import Baseline
from harness.tracking.gate_record import GATE_RECORD, gate_record
from harness.tracking.mlflow_fields import metric_key, trend_keys
from harness.tracking.mlflow_store import MlflowExperiment, measured, surroundings
from harness.tracking.records import FinishedGate, ScheduledRun, TrendPoint
from harness.tracking.saved_views import gate_view, trend_view
from harness.tracking.tracker import Links

_NOTHING = TrendPoint(*[math.nan] * 5)

_FILE = "baseline.json"

_FORMER_KIND, _FORMER_FILE, _FORMER_COUNT, _FORMER_PREFIX = "accepted", "accepted.json", "nights", "accepted/"
"""The names before version 0.2 of the run kind `baseline`, its file, the tag `scheduled_runs` and `baseline/…` keys."""


class MlflowTrends(MlflowExperiment):
    """The accepted baselines and trends of one MLflow experiment."""

    def accept(self, baseline: Baseline) -> None:
        """Store a baseline as an MLflow run. The newest baseline is used."""
        with self.explained(), self.alone():
            tags = {
                **surroundings(),
                "kind": "baseline",
                "accepted_by": baseline.who,
                "accepted_at": baseline.when,
                "accepted_why": baseline.why,
                "launch": baseline.launch,
                "mlflow.note.content": f"Accepted by {baseline.who} on {baseline.when}: {baseline.why}",
            }
            run = self.client.create_run(self.experiment_id, tags=tags, run_name=f"baseline {baseline.when}")
            self._write(run.info.run_id, {_FILE: json.dumps(baseline.to_json(), ensure_ascii=False).encode()})
            self.client.set_terminated(run.info.run_id, "FINISHED")

    def baseline(self) -> Baseline | None:
        """Return the newest accepted baseline; None if there is none. Raises DataError if it cannot be read."""
        with self.explained():
            runs = [
                (run, file)
                for kind, file in (("baseline", _FILE), (_FORMER_KIND, _FORMER_FILE))
                for run in self.search(f"tags.kind = '{kind}' and attributes.status = 'FINISHED'")
            ]
            if not runs:
                return None
            newest, file = max(runs, key=lambda found: (found[0].info.start_time, found[0].info.run_id))
            run_id = newest.info.run_id
            with tempfile.TemporaryDirectory() as folder:
                text = Path(self.client.download_artifacts(run_id, file, folder)).read_text(encoding="utf-8")
        where = f"MLflow run {run_id}: {file}"
        try:
            return Baseline.from_json(json.loads(text), where=where)
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(f"{where}: cannot be read: {error}; accept a baseline again") from None

    def log_gate(self, gate: FinishedGate) -> Links:
        """Add a point to the trend of each trial and the gate's files to the launch; return the link to the trends."""
        with self.explained(), self.alone():
            shown = {}
            for view in (trend_view(list(map(metric_key, gate.metrics))), gate_view()):
                tag = f"mlflow.sharedViewState.{view.key}"
                self.client.set_experiment_tag(self.experiment_id, tag, view.encoded())
                shown[view.name] = self.link(view)
            for run in self.search(f"tags.kind = 'launch' and tags.launch = '{gate.launch}'"):
                for name, value in {"gate": gate.verdict, **gate.tags}.items():
                    self.client.set_tag(run.info.run_id, name, value)
                self._write(run.info.run_id, gate.files, "gate")
                shown["History"] = self.artifact_link(run.info.run_id, "gate/history.html")
            for trial, run in gate.runs.items():
                run_id, count = self._trend(trial)
                values = {
                    key: value
                    for metric, point in run.points.items()
                    for key, value in zip(trend_keys(metric), point, strict=True)
                }
                self.client.log_batch(run_id, metrics=measured(values, count + 1, run.when))
                self.client.set_tag(run_id, "scheduled_runs", str(count + 1))
                self.client.set_tag(run_id, "gate", gate.verdict)
            return {self.where: shown}

    def history(self, trials: Sequence[str], metrics: Sequence[str]) -> dict[str, list[ScheduledRun]]:
        """Return the scheduled runs of each trial, oldest first, with the metrics that have a value."""
        found: dict[str, list[ScheduledRun]] = {}
        with self.explained():
            for trial in trials:
                run = self._find(trial)
                steps: dict[int, tuple[int, dict[str, TrendPoint]]] = {}
                for metric in metrics if run is not None else ():
                    for field, key in trend_keys(metric)._asdict().items():
                        for point in self._points(run.info.run_id, key):
                            points = steps.setdefault(point.step, (point.timestamp, {}))[1]
                            points[metric] = points.get(metric, _NOTHING)._replace(**{field: point.value})
                found[trial] = [ScheduledRun(*steps[step]) for step in sorted(steps)]
        return found

    def gate_records(self, most: int) -> list[Mapping[str, Any]]:
        """Return the records of the newest scheduled runs, oldest first; one whose file is gone is left out."""
        from mlflow.exceptions import MlflowException

        found = []
        with self.explained(), tempfile.TemporaryDirectory() as folder:
            runs = [run for run in self.search("tags.kind = 'launch'") if run.data.tags.get("gate")]
            for run in sorted(runs, key=lambda run: int(run.info.start_time))[-most:]:
                with contextlib.suppress(OSError, MlflowException):
                    file = self.client.download_artifacts(run.info.run_id, f"gate/{GATE_RECORD}", folder)
                    found.append(gate_record(Path(file)))
        return [record for record in found if record is not None]

    def _points(self, run_id: str, key: str) -> list[Any]:
        points = list(self.client.get_metric_history(run_id, key))
        if key.startswith("baseline/"):
            former = self.client.get_metric_history(run_id, _FORMER_PREFIX + key.removeprefix("baseline/"))
            points = [*former, *points]
        return points

    def _find(self, trial: str) -> Any:
        return next((run for run in self.search("tags.kind = 'trend'") if run.data.tags.get("trial") == trial), None)

    def _trend(self, trial: str) -> tuple[str, int]:
        """The trial's trend run, created if it has none, and its number of scheduled runs so far."""
        run = self._find(trial)
        if run is not None:
            tags = run.data.tags
            return str(run.info.run_id), int(tags.get("scheduled_runs", tags.get(_FORMER_COUNT, 0)))
        tags = {**surroundings(), "kind": "trend", "trial": trial, "scheduled_runs": "0"}
        made = self.client.create_run(self.experiment_id, tags=tags, run_name=f"trend · {trial}")
        return str(made.info.run_id), 0

    def _write(self, run_id: str, files: Mapping[str, bytes], folder: str | None = None) -> None:
        with tempfile.TemporaryDirectory() as local:
            for name, content in files.items():
                Path(local, name).write_bytes(content)
            self.client.log_artifacts(run_id, local, folder)
