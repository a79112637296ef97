"""The tracker: where launches, accepted baselines and scheduled runs are logged."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from harness.evaluation.baseline import Baseline
from harness.tracking.records import FinishedGate, FinishedLaunch, FinishedTrial, ScheduledRun
from harness.tracking.running_launch import RunningLaunch

Links = dict[str, dict[str, str]]
"""Where results can be seen: links by name, for each destination, which is described as text for the user."""


class Tracker(Protocol):
    """Logs the launches of one experiment to one destination.

    The store is the source of truth: logging a trial again must not duplicate it. All methods raise HarnessError if the
    destination cannot be used.
    """

    @property
    def uri(self) -> str:
        """The destination, without secrets."""
        ...

    def log_trial(self, trial: FinishedTrial, launch: str) -> None:
        """Log a trial unless it is logged already."""
        ...

    def log_running(self, state: RunningLaunch) -> None:
        """Show the state of a launch that runs. `log_launch` or `log_failure` ends it. By default, it is not shown."""
        return

    def log_failure(self, launch: str, *, interrupted: bool) -> None:
        """End a launch that failed or was interrupted, if its state was shown."""
        return

    def log_launch(self, launch: FinishedLaunch) -> Links:
        """Log a launch and assign its trials to it, which are logged; return where it can be seen."""
        ...

    def accept(self, baseline: Baseline) -> None:
        """Store a baseline. The newest one is used."""
        ...

    def baseline(self) -> Baseline | None:
        """Return the newest accepted baseline; None if there is none. Raises DataError if it cannot be read."""
        ...

    def log_gate(self, gate: FinishedGate) -> Links:
        """Add a scheduled run to the trends of its trials, and the gate's files to the launch."""
        ...

    def history(self, trials: Sequence[str], metrics: Sequence[str]) -> dict[str, list[ScheduledRun]]:
        """Return the scheduled runs of each trial, oldest first, with the metrics that have a value."""
        ...

    def gate_records(self, most: int) -> list[Mapping[str, Any]]:
        """Return the content of `gate.json` of at most so many scheduled runs, the newest ones, oldest first."""
        ...
