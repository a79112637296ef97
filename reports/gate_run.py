"""A scheduled run of the regression gate: run, compare with the baseline, log; or accept a new baseline."""

import getpass
import math
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Unpack

from harness.core.errors import ConfigError
from harness.evaluation.baseline import Baseline
from harness.evaluation.results import TrialResult
from harness.evaluation.trial_means import mean_interval
from harness.experiment.experiment import Experiment
from harness.running.acceptance import accept, require_comparable
from harness.running.launch import LaunchOptions
from harness.running.launch_result import Launch
from harness.running.session import Session, store_folder
from harness.tracking import FinishedGate, ScheduledRun, TrendPoint, open_tracker
from reports.gate import compare_with_baseline, margins
from reports.gate_files import files, tags
from reports.gate_result import CODES, GateResult
from reports.logged_run import run

_MOST_RUNS = 100
"""Earlier scheduled runs on the page of the history; its figure has all."""


def gate(experiment: Experiment, *, fresh: bool = False, **options: Unpack[LaunchOptions]) -> GateResult:
    """Runs an experiment, compares it with the accepted baseline, and logs launch, verdict and trend.

    The baseline is read from where the run is logged. `fresh` uses an empty store, so that remote models are called
    again. Raises ConfigError if no baseline has been accepted, or if data, queries or judges differ from those of the
    baseline; the run is then not logged.
    """
    _require_whole(experiment)
    store = store_folder(options.get("store"), experiment.base_dir)
    tracker = open_tracker(experiment.name, options.get("tracking"), store.resolve(), experiment.base_dir)
    baseline = tracker.baseline()
    if baseline is None:
        message = f"no baseline of '{experiment.name}' has been accepted in {tracker.uri}"
        raise ConfigError(f"gate: {message}; `--accept --why TEXT` accepts today's results as the baseline")
    require_comparable(baseline, Session(experiment, store))
    with tempfile.TemporaryDirectory() as temporary:
        options["store"] = Path(temporary) if fresh else store
        launch = run(experiment, **options)
        found = compare_with_baseline(launch, baseline)
        now = int(time.time() * 1000)
        trends = {result.name: _trend(result, launch) for result in launch.results}
        runs = {result.name: ScheduledRun(now, _points(found, result)) for result in launch.results}
        before = tracker.history(list(trends.values()), list(margins(launch)))
        past = {name: [*before[trends[name]], run] for name, run in runs.items()}
        found = replace(found, history=past, when=now, earlier=tracker.gate_records(_MOST_RUNS))
        points = {trends[name]: run for name, run in runs.items()}
        logged = tracker.log_gate(FinishedGate(launch.id, found.verdict, points, files(found), tags(found)))
    return replace(found, logged=logged)


def accept_launch(
    experiment: Experiment, *, why: str, who: str | None = None, **options: Unpack[LaunchOptions]
) -> Baseline:
    """Runs an experiment and accepts its results as the baseline of its gate, in the name of `who` (default: the user).

    Raises ConfigError if `why` is empty, or if a judge's mean is withheld: with such a baseline, anything would pass.
    """
    if not why.strip():
        raise ConfigError("gate: --accept needs a reason: --why TEXT")
    _require_whole(experiment)
    launch = run(experiment, **options)
    if launch.withheld:
        raise ConfigError(
            f"gate: too many judgments of {', '.join(launch.withheld)} are missing to accept these results"
        )
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    baseline = accept(launch, who=who or _user(), when=when, why=why.strip())
    store = store_folder(options.get("store"), experiment.base_dir).resolve()
    open_tracker(experiment.name, options.get("tracking"), store, experiment.base_dir).accept(baseline)
    return baseline


def _require_whole(experiment: Experiment) -> None:
    """Raises ConfigError for a part of an experiment."""
    if experiment.partial:
        message = (
            f"is part of an experiment ({experiment.partial}); run all of it for a baseline, or to compare with one"
        )
        raise ConfigError(f"gate: {experiment.name} {message}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run as a user without a name
        raise ConfigError("gate: this user has no name; pass one with --who NAME") from None


def _trend(result: TrialResult, launch: Launch) -> str:
    """The name of a trial's trend. That of an only trial stays the same when its components change."""
    return result.name if len(launch.results) > 1 else "base"


def _points(found: GateResult, result: TrialResult) -> dict[str, TrendPoint]:
    """This run in a trial's trend: each gated metric's mean and interval, the baseline's mean, the verdict."""
    points = {}
    for check in found.checks:
        if check.trial == result.name:
            low, high = mean_interval(result, check.metric) or (math.nan, math.nan)
            points[check.metric] = TrendPoint(check.today, low, high, check.baseline, CODES[check.verdict])
    return points
