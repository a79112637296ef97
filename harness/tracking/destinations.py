"""Where to log: trackers by destination, and several of them used as one."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.core.errors import ConfigError
from harness.evaluation.baseline import Baseline
from harness.tracking.records import FinishedGate, FinishedLaunch, FinishedTrial, ScheduledRun
from harness.tracking.running_launch import RunningLaunch
from harness.tracking.tracker import Links, Tracker

Destinations = str | Sequence[str] | None
"""Where to log: a destination, several, or None for the default. See `open_tracker`."""


class Trackers:
    """Several trackers as one: each logs everything. The newest baseline is used, and the longest history."""

    def __init__(self, trackers: Sequence[Tracker]) -> None:
        self._trackers = list(trackers)

    @property
    def uri(self) -> str:
        """All destinations."""
        return ", ".join(tracker.uri for tracker in self._trackers)

    def log_trial(self, trial: FinishedTrial, launch: str) -> None:
        """Log a trial to every destination."""
        for tracker in self._trackers:
            tracker.log_trial(trial, launch)

    def log_running(self, state: RunningLaunch) -> None:
        """Show the state of a launch in every destination."""
        for tracker in self._trackers:
            tracker.log_running(state)

    def log_failure(self, launch: str, *, interrupted: bool) -> None:
        """End a launch in every destination."""
        for tracker in self._trackers:
            tracker.log_failure(launch, interrupted=interrupted)

    def log_launch(self, launch: FinishedLaunch) -> Links:
        """Log a launch to every destination."""
        return _merged([tracker.log_launch(launch) for tracker in self._trackers])

    def accept(self, baseline: Baseline) -> None:
        """Store a baseline in every destination."""
        for tracker in self._trackers:
            tracker.accept(baseline)

    def baseline(self) -> Baseline | None:
        """Return the newest accepted baseline of all destinations."""
        found = [found for tracker in self._trackers if (found := tracker.baseline())]
        return max(found, key=lambda baseline: baseline.when, default=None)

    def log_gate(self, gate: FinishedGate) -> Links:
        """Log a scheduled run to every destination."""
        return _merged([tracker.log_gate(gate) for tracker in self._trackers])

    def history(self, trials: Sequence[str], metrics: Sequence[str]) -> dict[str, list[ScheduledRun]]:
        """Return the longest history of each trial: a destination added later lacks the first runs."""
        found = [tracker.history(trials, metrics) for tracker in self._trackers]
        return {trial: max((one[trial] for one in found), key=len) for trial in trials}

    def gate_records(self, most: int) -> list[Mapping[str, Any]]:
        """Return the records of the destination that has the most."""
        return max((tracker.gate_records(most) for tracker in self._trackers), key=len)


def _merged(links: Sequence[Links]) -> Links:
    return {where: pages for one in links for where, pages in one.items()}


def open_tracker(experiment: str, destinations: Destinations, store: Path, base_dir: Path | None = None) -> Tracker:
    """Return the tracker of an experiment.

    A destination is `jsonl:FOLDER`, or anything that MLflow takes as a tracking URI; the default is MLflow's, or else
    `mlflow.db` in the project of the experiment, whose folder is `base_dir` (default: the working folder). `store` is
    the folder of stored results, where a tracker may keep notes. Raises ConfigError if a destination is given twice.
    """
    if destinations is None:
        from harness.tracking.mlflow_store import default_uri

        destinations = default_uri(base_dir)
    given = [destinations] if isinstance(destinations, str) else list(destinations)
    trackers = [_opened(experiment, one, store) for one in given]
    if len({tracker.uri for tracker in trackers}) < len(trackers):
        raise ConfigError(f"tracking: {', '.join(map(str, given))}: a destination is given twice")
    return trackers[0] if len(trackers) == 1 else Trackers(trackers)


def _opened(experiment: str, destination: str, store: Path) -> Tracker:
    scheme = destination.partition(":")[0].lower()
    return _SCHEMES.get(scheme, _mlflow)(experiment, destination, store)


def _mlflow(experiment: str, destination: str, store: Path) -> Tracker:
    from harness.tracking.mlflow_tracker import MlflowTracker

    return MlflowTracker(experiment, destination, store)


def _json_lines(experiment: str, destination: str, store: Path) -> Tracker:
    from harness.tracking.json_lines import JsonLinesTracker

    return JsonLinesTracker(experiment, destination.partition(":")[2])


_SCHEMES: Mapping[str, Callable[[str, str, Path], Tracker]] = {"jsonl": _json_lines}
"""Trackers by the scheme of their destinations; MLflow takes all others."""
