"""A scheduled run of the regression gate: run, compare with the baseline, log; or accept a new baseline."""

import getpass
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from harness.core.errors import ConfigError
from harness.evaluation.baseline import Baseline
from harness.evaluation.results import TrialResult
from harness.experiment.experiment import Experiment
from harness.running.acceptance import accept, require_comparable
from harness.running.models import Models
from harness.running.session import Session, store_folder
from harness.tracking import ScheduledRun, ScheduledRuns
from harness.tracking.mlflow_fields import intervals, metric_key
from reports.gate import compare_with_baseline, margins
from reports.gate_result import CODES, GateResult, files, trend_keys
from reports.logged_run import run


def gate(
    experiment: Experiment,
    *,
    workers: int = 1,
    store: Path | str | None = None,
    tracking: str | None = None,
    models: Models | None = None,
    fresh: bool = False,
    notify: Callable[[str], None] = lambda _: None,
) -> GateResult:
    """Runs an experiment, compares it with the accepted baseline in MLflow, and logs launch, verdict and trend.

    `fresh` uses an empty store, so that remote models are called again. Raises ConfigError if no baseline has been
    accepted, or if data, queries or judges differ from those of the baseline; the run is then not logged.
    """
    runs = ScheduledRuns(experiment.name, tracking)
    baseline = runs.baseline()
    if baseline is None:
        message = f"no baseline of '{experiment.name}' has been accepted in {runs.uri}"
        raise ConfigError(f"gate: {message}; `--accept --why TEXT` accepts today's results as the baseline")
    require_comparable(baseline, Session(experiment, store_folder(store)))
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary) if fresh else store_folder(store)
        launch = run(
            experiment,
            workers=workers,
            store=place,
            tracking=tracking,
            models=models,
            notify=notify,
        )
        found = compare_with_baseline(launch, baseline)
        metrics = list(margins(launch))
        keys = [key for metric in metrics for key in trend_keys(metric)]
        points = {result.name: _point(found, result) for result in launch.results}
        before = runs.history([result.name for result in launch.results], keys)
        now = int(time.time() * 1000)
        history = {name: [*past, ScheduledRun(now, points[name])] for name, past in before.items()}
        found = replace(found, history=history)
        link = runs.log_run(launch.id, found.verdict, points, files(found), list(map(metric_key, metrics)))
    return replace(found, link=link)


def accept_launch(
    experiment: Experiment,
    *,
    why: str,
    who: str | None = None,
    workers: int = 1,
    store: Path | str | None = None,
    tracking: str | None = None,
    models: Models | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> Baseline:
    """Runs an experiment and accepts its results as the baseline of its gate, in the name of `who` (default: the user).

    Raises ConfigError if `why` is empty, or if a judge's mean is withheld: with such a baseline, anything would pass.
    """
    if not why.strip():
        raise ConfigError("gate: --accept needs a reason: --why TEXT")
    launch = run(experiment, workers=workers, store=store, tracking=tracking, models=models, notify=notify)
    if launch.withheld:
        raise ConfigError(
            f"gate: too many judgments of {', '.join(launch.withheld)} are missing to accept these results"
        )
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    baseline = accept(launch, who=who or _user(), when=when, why=why.strip())
    ScheduledRuns(experiment.name, tracking).accept(baseline)
    return baseline


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run as a user without a name
        raise ConfigError("gate: this user has no name; pass one with --who NAME") from None


def _point(found: GateResult, result: TrialResult) -> dict[str, float]:
    """The values of this run in a trial's trend: each metric's mean and interval, the baseline's mean, the verdict."""
    values: dict[str, float] = {}
    for check in found.checks:
        if check.trial != result.name:
            continue
        mean, _, _, baseline, verdict = trend_keys(check.metric)
        values |= {mean: check.today, baseline: check.baseline, verdict: CODES[check.verdict]}
        values |= intervals(result, [check.metric])
    return {name: value for name, value in values.items() if not math.isnan(value)}
