"""Log launches to MLflow: one flat run per trial, one run per launch, and saved views."""

import itertools
import json
import math
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from harness.core.secrecy import redact
from harness.evaluation.results import TrialResult
from harness.evaluation.trial_means import curves
from harness.storage.digest import digest
from harness.storage.locks import locked
from harness.tracking.mlflow_fields import TABLE, metric_key, trial_metrics, write_files
from harness.tracking.mlflow_live import MlflowLive
from harness.tracking.mlflow_store import measured, surroundings
from harness.tracking.mlflow_traces import write_traces
from harness.tracking.records import FinishedLaunch, FinishedTrial
from harness.tracking.saved_views import views
from harness.tracking.tracker import Links
from harness.tracking.trial_files import redact_all

TRACES = "traces"
"""The tag of a trial's run that says how many of its queries have traces."""


class Logged(NamedTuple):
    """A trial's run in MLflow, and what its tags say: the launch, the name, and how many queries have traces."""

    run_id: str
    launch: str
    name: str
    traces: int = 0


class MlflowTracker(MlflowLive):
    """Writes launches to MLflow. The store is the source of truth, and logging a trial again does not duplicate it.

    A trial's run is identified by the tag `fingerprint`. A run that is FINISHED is only tagged with the new launch; an
    unfinished one is deleted and written again. Locks in the store prevent two launches from logging a trial twice.
    """

    def __init__(self, experiment: str, uri: str | None, store: Path) -> None:
        super().__init__(experiment, uri)
        self._place = store / "mlflow" / digest({"uri": self.uri, "experiment": self.experiment_id})[:16]
        self._inputs: dict[str, Any] = {}

    @cached_property
    def _logged(self) -> dict[str, Logged]:
        """Trials in MLflow, by fingerprint."""
        with self.explained():
            runs = self.search("tags.kind = 'trial' and attributes.status = 'FINISHED'")
            return {run.data.tags["fingerprint"]: _logged(run) for run in runs}

    def log_trial(self, trial: FinishedTrial, launch: str) -> None:
        """Log a trial unless it is logged already; `log_launch` assigns it to the launch."""
        result = trial.result
        known = self._logged.get(result.fingerprint)
        if known is None:
            with self.explained(), self.alone(), locked(self._place / f"{result.fingerprint}.lock"):
                known = self._of_another_launch(result.fingerprint)
                if known is None:
                    self._delete_unfinished(result.fingerprint)
                    run_id = self._write_trial(trial, launch)
                    (self._place / result.fingerprint).write_text(run_id)
                    known = Logged(run_id, launch, result.name)
            self._logged[result.fingerprint] = known

    def _of_another_launch(self, fingerprint: str) -> Logged | None:
        """The run that another launch has written since this tracker was created; None if there is none."""
        note = self._place / fingerprint
        if not note.is_file():
            return None
        found = list(self.search(f"tags.fingerprint = '{fingerprint}' and attributes.status = 'FINISHED'"))
        return _logged(found[0]) if found else None

    def _delete_unfinished(self, fingerprint: str) -> None:
        for run in self.search(f"tags.fingerprint = '{fingerprint}' and attributes.status != 'FINISHED'"):
            self.client.delete_run(run.info.run_id)

    def _write_trial(self, trial: FinishedTrial, launch: str) -> str:
        from mlflow.entities import DatasetInput, InputTag, Param

        result = trial.result
        tags = {
            **surroundings(),
            "mlflow.source.name": trial.source,
            "kind": "trial",
            "launch": launch,
            "fingerprint": result.fingerprint,
            "final": str(trial.final).lower(),
            "dataset_digest": trial.dataset.corpus.sha256[:36],
            **({"synthetic": "true"} if trial.data.synthetic else {}),
            **({"partial": f"at most {result.params['limit']} queries"} if "limit" in result.params else {}),
            "mlflow.loggedArtifacts": json.dumps([{"path": TABLE, "type": "table"}]),
            **{f"{slot}.source_sha": part["source"] for slot, part in _own_parts(result.settings)},
        }
        run_id: str = self.client.create_run(self.experiment_id, run_name=result.name, tags=tags).info.run_id
        values = measured(trial_metrics(result, trial.metrics))
        for curve, points in curves(result).items():
            for step, value in points:
                values += measured({f"curve/{curve}": value}, step)
        params = [Param(name, redact(value)) for name, value in result.params.items()]
        self.client.log_batch(run_id, metrics=values, params=params)
        self.client.log_inputs(run_id, [DatasetInput(self._input(trial), [InputTag("mlflow.data.context", "eval")])])
        with tempfile.TemporaryDirectory() as folder:
            write_files(Path(folder), trial)
            redact_all(Path(folder))
            self.client.log_artifacts(run_id, folder)
        self.client.set_terminated(run_id, "FINISHED")  # written last: only a FINISHED run counts as logged
        return run_id

    def _input(self, trial: FinishedTrial) -> Any:
        from mlflow.entities import Dataset

        data, result = trial.data, trial.result
        if data.queries not in self._inputs:
            profile = {"num_queries": len(result.queries), "num_evidence": sum(map(len, result.evidence_outcomes))}
            source = json.dumps({"uri": data.manifest.root.as_posix()})
            described = json.dumps(data.hashes), json.dumps(profile)
            self._inputs[data.queries] = Dataset(data.name, data.digest[:36], "local", source, *described)
        return self._inputs[data.queries]

    def log_launch(self, launch: FinishedLaunch) -> Links:
        """Log the launch and write the saved views; return their links by name."""
        with self.explained(), self.alone():
            self._write_launch(launch)
            return {self.where: {**self._put_views(launch), **self._put_traces(launch)}}

    def _write_launch(self, finished: FinishedLaunch) -> None:
        from mlflow.entities import RunTag

        top, report = finished.top, finished.report
        own = {name: redact(value) for name, value in finished.tags.items()}
        tags = {
            **own,
            **surroundings(),
            "kind": "launch",
            "launch": finished.launch,
            "final": str(finished.final).lower(),
            "test_set_accesses": str(finished.test_set_accesses),
            "trials": str(len(finished.results)),
            "top_trial": top.name,
            **({"synthetic": "true"} if finished.synthetic else {}),
            **({"partial": finished.partial} if finished.partial else {}),
        }
        for result in finished.results:
            self._tag(result, finished.launch, {**own, **report.tags.get(result.name, {})})
        run_id = self.running.pop(finished.launch, "")
        if run_id:
            marks = {**tags, "mlflow.runName": _name(finished)}
            done = {
                "trials_finished": len(finished.results),
                "share_of_current_work": 1,
                "seconds_left_of_current_work": 0,
            }
            last = measured({f"progress/{name}": value for name, value in done.items()}, _step_since(finished.begun))
            self.client.log_batch(run_id, metrics=last, tags=[RunTag(name, value) for name, value in marks.items()])
        else:
            begun = round(finished.begun * 1000)
            run_id = self.client.create_run(self.experiment_id, begun, tags, run_name=_name(finished)).info.run_id
        values = {metric_key(name): top.mean(name) for name in finished.metrics}
        values |= {f"work/{stage}": count for stage, count in finished.work.items()}
        values |= {f"llm/{name}": value for name, value in finished.spend.items()}
        self.client.log_batch(run_id, metrics=measured(values))
        with tempfile.TemporaryDirectory() as folder:
            for name, content in report.files.items():
                Path(folder, name).write_bytes(content)
            redact_all(Path(folder))
            self.client.log_artifacts(run_id, folder)
        accesses = str(finished.test_set_accesses)
        self.client.set_experiment_tag(self.experiment_id, "test_set_accesses", accesses)
        parts = [finished.notes, report.files.get("comparison.md", b"").decode()]
        note = redact("\n\n".join(filter(None, parts)))[:8000]
        self.client.set_tag(run_id, "mlflow.note.content", note)
        self.client.set_terminated(run_id, "FINISHED")

    def _put_traces(self, finished: FinishedLaunch) -> dict[str, str]:
        """Write traces of the best trial and the baseline; return the link to their comparison."""
        from mlflow.tracing.client import TracingClient

        runs = []
        for trial in finished.traced if finished.traces else ():
            known = self._logged[trial.result.fingerprint]
            runs.append(known.run_id)
            wanted = min(finished.traces, len(trial.result.queries))
            if known.traces < wanted:
                rows, begun = itertools.islice(trial.rows(), wanted), round(finished.begun * 1000)
                self._delete_traces(known.run_id)
                tracing = TracingClient(self.uri)
                metrics = [name for name in finished.metrics if name in trial.metrics]
                count = write_traces(tracing, self.experiment_id, known.run_id, rows, metrics, begun)
                self.client.set_tag(known.run_id, TRACES, str(count))
        return {"Traces": self.traces_link(runs)} if runs else {}

    def _delete_traces(self, run_id: str) -> None:
        """Remove the traces of a run: fewer than are wanted, or written by a launch that was killed."""
        while True:
            found = self.client.search_traces(
                locations=[self.experiment_id],
                filter_string=f"metadata.`mlflow.sourceRun` = '{run_id}'",
                max_results=100,
                include_spans=False,
            )
            if not found:
                return
            self.client.delete_traces(self.experiment_id, trace_ids=[one.info.trace_id for one in found])

    def _tag(self, result: TrialResult, launch: str, tags: Mapping[str, str]) -> None:
        """Assign a trial's run to the launch, and add the tags with its comparison, in one transaction."""
        from mlflow.entities import RunTag

        known = self._logged.get(result.fingerprint)
        if known is None:
            return
        if known.name != result.name:
            self.client.set_tag(known.run_id, "mlflow.runName", result.name)
        changed = {**tags, **({"launch": launch} if known.launch != launch else {})}
        if changed:
            self.client.log_batch(known.run_id, tags=[RunTag(name, value) for name, value in changed.items()])

    def _put_views(self, finished: FinishedLaunch) -> dict[str, str]:
        links: dict[str, str] = {}
        for view in views(finished, [metric_key(name) for name in finished.metrics]):
            self.client.set_experiment_tag(self.experiment_id, f"mlflow.sharedViewState.{view.key}", view.encoded())
            links[view.name] = self.link(view)
        return links


def _name(launch: FinishedLaunch) -> str:
    """The name of a launch's run."""
    return f"launch {launch.launch}" + (" (partial)" if launch.partial else "")


def _step_since(begun: float) -> int:
    """The seconds since a launch began: the step of its last numbers, as MLflow shows those of the highest step."""
    return math.ceil(time.time() - begun)


def _logged(run: Any) -> Logged:
    tags = run.data.tags
    return Logged(run.info.run_id, tags.get("launch", ""), run.info.run_name, int(tags.get(TRACES, 0)))


def _own_parts(settings: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for slot, part in settings.items():
        if isinstance(part, Mapping) and "source" in part:
            yield slot, part
