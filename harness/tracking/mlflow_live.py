"""Launches under way in MLflow: a run that is not finished, with its numbers as they change."""

import platform

from harness.core.secrecy import redact
from harness.tracking.mlflow_store import measured, surroundings
from harness.tracking.mlflow_trends import MlflowTrends
from harness.tracking.running_launch import RunningLaunch, is_alive

PROCESS = "process"
"""The tag of a launch under way that says where it runs: host and process id."""


class MlflowLive(MlflowTrends):
    """Shows launches under way; `running` has their runs by launch."""

    def __init__(self, experiment: str, uri: str | None) -> None:
        super().__init__(experiment, uri)
        self.running: dict[str, str] = {}

    def log_running(self, state: RunningLaunch) -> None:
        """Show the state of a launch as a run under way, with its numbers as they change."""
        with self.explained(), self.alone():
            if state.launch not in self.running:
                self._end_killed()
                tags = {**surroundings(), "kind": "launch", "launch": state.launch, "trials": str(state.trials)}
                tags[PROCESS] = f"{state.host}:{state.process}"
                made = self.client.create_run(
                    self.experiment_id, round(state.begun * 1000), tags, run_name=f"launch {state.launch}"
                )
                self.running[state.launch] = made.info.run_id
            values = {f"progress/{name}": value for name, value in state.metrics.items()}
            run_id, seconds = self.running[state.launch], round(state.updated - state.begun)
            self.client.log_batch(run_id, metrics=measured(values, seconds))
            self.client.set_tag(run_id, "mlflow.note.content", redact(state.words))

    def log_failure(self, launch: str, *, interrupted: bool) -> None:
        """End the run of a launch."""
        run_id = self.running.pop(launch, None)
        if run_id:
            with self.explained(), self.alone():
                self.client.set_terminated(run_id, "KILLED" if interrupted else "FAILED")

    def _end_killed(self) -> None:
        """End the runs of launches of this machine whose process is gone."""
        for run in self.search("tags.kind = 'launch' and attributes.status = 'RUNNING'"):
            host, _, process = run.data.tags.get(PROCESS, "").rpartition(":")
            if host == platform.node() and not is_alive(int(process)):
                shown = run.data.metrics.get("progress/seconds", 0.0)
                self.client.set_terminated(run.info.run_id, "KILLED", run.info.start_time + round(shown * 1000))
