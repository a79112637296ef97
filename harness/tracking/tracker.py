"""Log launches to MLflow: one flat run per trial, one run per launch, and saved views."""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.core.secrecy import redact, redact_file
from harness.data.manifest import Manifest
from harness.evaluation.results import TrialResult
from harness.storage.digest import digest
from harness.storage.locks import locked
from harness.tracking.mlflow_fields import TABLE, curves, metric_key, trial_metrics, write_files
from harness.tracking.mlflow_store import MlflowExperiment, measured, surroundings
from harness.tracking.saved_views import views


class Logged(NamedTuple):
    """A trial's run in MLflow, and the launch in its tag."""

    run_id: str
    launch: str


class FinishedTrial(NamedTuple):
    """What is logged of a trial: its result, the requested metrics, its data set and its per-query records.

    `rows` returns the records and is called only if needed. `settings` is the trial as JSON, `source` the experiment
    file, `final` whether the trial was scored on the locked query set.
    """

    result: TrialResult
    metrics: Sequence[str]
    dataset: Manifest
    rows: Callable[[], Iterable[Mapping[str, Any]]]
    settings: str
    source: str
    final: bool


class FinishedLaunch(NamedTuple):
    """What is logged of a launch: its results, the requested metrics (the primary one first), and its circumstances.

    `begun` is its start in seconds since the epoch; `synthetic` whether a language model wrote the queries;
    `test_set_accesses` the number of accesses to the locked query set; `work` the work done, by stage; `spend` the use
    of language models; `report` its files by name, of which `comparison.md` also becomes the note; `said` the tags of
    each trial, by trial name, with the result of its comparison.
    """

    launch: str
    results: Sequence[TrialResult]
    metrics: Sequence[str]
    begun: float
    final: bool
    synthetic: bool
    test_set_accesses: int
    work: Mapping[str, int]
    spend: Mapping[str, float]
    report: Mapping[str, bytes]
    said: Mapping[str, Mapping[str, str]]


class Tracker(MlflowExperiment):
    """Writes launches to MLflow. The store is the source of truth, and logging a trial again does not duplicate it.

    A trial's run is identified by the tag `fingerprint`. A run that is FINISHED is only tagged with the new launch; an
    unfinished one is deleted and written again. Locks in the store prevent two launches from logging a trial twice.
    """

    def __init__(self, experiment: str, uri: str | None, store: Path) -> None:
        super().__init__(experiment, uri)
        self._place = store / "mlflow" / digest({"uri": self.uri, "experiment": self.experiment_id})[:16]
        with self.explained():
            self._logged = self._finished()
        self._inputs: dict[str, Any] = {}

    def _finished(self) -> dict[str, Logged]:
        """Trials already in MLflow, by fingerprint."""
        runs = self.search("tags.kind = 'trial' and attributes.status = 'FINISHED'")
        return {run.data.tags["fingerprint"]: Logged(run.info.run_id, run.data.tags.get("launch", "")) for run in runs}

    def log_trial(self, trial: FinishedTrial, launch: str) -> None:
        """Log a trial, or only tag its run with the launch if it is logged already."""
        result = trial.result
        known = self._logged.get(result.fingerprint)
        if known is None:
            with self.explained(), self.alone(), locked(self._place / f"{result.fingerprint}.lock"):
                known = self._of_another_launch(result.fingerprint)
                if known is None:
                    self._delete_unfinished(result.fingerprint)
                    run_id = self._write_trial(trial, launch)
                    (self._place / result.fingerprint).write_text(run_id)
                    known = Logged(run_id, launch)
            self._logged[result.fingerprint] = known
        if known.launch != launch:
            with self.explained(), self.alone():
                self.client.set_tag(known.run_id, "launch", launch)
                self.client.set_tag(known.run_id, "mlflow.runName", result.name)

    def _of_another_launch(self, fingerprint: str) -> Logged | None:
        """The run that another launch has written since this tracker was created; None if there is none."""
        note = self._place / fingerprint
        if not note.is_file():
            return None
        found = list(self.search(f"tags.fingerprint = '{fingerprint}' and attributes.status = 'FINISHED'"))
        return Logged(found[0].info.run_id, found[0].data.tags.get("launch", "")) if found else None

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
            **({"synthetic": "true"} if trial.dataset.query_set(result.params["queries"]).synthetic else {}),
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
        self.client.log_inputs(
            run_id, [DatasetInput(self._input(trial.dataset, result), [InputTag("mlflow.data.context", "eval")])]
        )
        with tempfile.TemporaryDirectory() as folder:
            write_files(Path(folder), result, trial.metrics, list(trial.rows()), trial.settings)
            _redact_all(Path(folder))
            self.client.log_artifacts(run_id, folder)
        self.client.set_terminated(run_id, "FINISHED")  # written last: only a FINISHED run counts as logged
        return run_id

    def _input(self, manifest: Manifest, result: TrialResult) -> Any:
        from mlflow.entities import Dataset

        queries = result.params["queries"]
        if queries not in self._inputs:
            hashes = {"corpus": manifest.corpus.sha256, "queries": manifest.query_set(queries).sha256}
            profile = json.dumps(
                {"num_queries": len(result.queries), "num_evidence": sum(map(len, result.evidence_outcomes))}
            )
            source = json.dumps({"uri": manifest.root.as_posix()})
            self._inputs[queries] = Dataset(
                f"{manifest.name}@{queries}", digest(hashes)[:36], "local", source, json.dumps(hashes), profile
            )
        return self._inputs[queries]

    def log_launch(self, finished: FinishedLaunch) -> dict[str, str]:
        """Log the launch and write the saved views; return their links by name."""
        with self.explained(), self.alone():
            self._write_launch(finished)
            return self._put_views(finished)

    def _write_launch(self, finished: FinishedLaunch) -> None:
        launch, results, metrics, begun, final, synthetic, test_set_accesses, work, spend, report, said = finished
        top = max(results, key=lambda result: (result.min_mean(metrics[0]), result.name))
        tags = {
            **surroundings(),
            "kind": "launch",
            "launch": launch,
            "final": str(final).lower(),
            "test_set_accesses": str(test_set_accesses),
            "trials": str(len(results)),
            "top_trial": top.name,
            **({"synthetic": "true"} if synthetic else {}),
        }
        for result in results:
            self._say(result, said.get(result.name, {}))
        run = self.client.create_run(self.experiment_id, round(begun * 1000), tags, run_name=f"launch {launch}")
        run_id = run.info.run_id
        values = {metric_key(name): top.mean(name) for name in metrics} | {
            f"work/{stage}": n for stage, n in work.items()
        }
        values |= {f"llm/{name}": value for name, value in spend.items()}
        self.client.log_batch(run_id, metrics=measured(values))
        with tempfile.TemporaryDirectory() as folder:
            for name, content in report.items():
                Path(folder, name).write_bytes(content)
            _redact_all(Path(folder))
            self.client.log_artifacts(run_id, folder)
        self.client.set_experiment_tag(self.experiment_id, "test_set_accesses", str(test_set_accesses))
        self.client.set_tag(run_id, "mlflow.note.content", redact(report.get("comparison.md", b"").decode())[:8000])
        self.client.set_terminated(run_id, "FINISHED")

    def _say(self, result: TrialResult, tags: Mapping[str, str]) -> None:
        """Add the tags with a trial's comparison to its run."""
        from mlflow.entities import RunTag

        if tags and result.fingerprint in self._logged:
            lines = [RunTag(name, value) for name, value in tags.items()]
            self.client.log_batch(self._logged[result.fingerprint].run_id, tags=lines)

    def _put_views(self, finished: FinishedLaunch) -> dict[str, str]:
        links: dict[str, str] = {}
        for view in views(finished.launch, finished.results, [metric_key(name) for name in finished.metrics]):
            self.client.set_experiment_tag(self.experiment_id, f"mlflow.sharedViewState.{view.key}", view.encoded())
            links[view.name] = self.link(view)
        return links


def _redact_all(folder: Path) -> None:
    for file in filter(Path.is_file, folder.rglob("*")):
        redact_file(file)


def _own_parts(settings: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for slot, part in settings.items():
        if isinstance(part, Mapping) and "source" in part:
            yield slot, part
