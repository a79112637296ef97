"""Baselines and trends of a regression gate in MLflow, those that version 0.1 wrote included."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from harness.evaluation.baseline import Baseline, BaselineTrial
from harness.tracking import FinishedGate, ScheduledRun, TrendPoint
from harness.tracking.mlflow_trends import MlflowTrends

TRIAL = BaselineTrial("base", {"chunker": "fixed"}, "f", {"recall@5": ([1.0], [1.0])}, [["found"]])


def baseline(why: str) -> Baseline:
    return Baseline("nightly", "launch-1", "ada", "2026-11-01 02:00 UTC", why, {"coverage": 0.5}, ["q1"], [TRIAL])


def write_as_version_0_1(runs: MlflowTrends, why: str, folder: Path) -> None:
    """A baseline under the names it had: the kind `accepted`, its file, and `fates` in it."""
    content = baseline(why).to_json()
    content["trials"] = [
        {"fates" if name == "evidence_outcomes" else name: value for name, value in trial.items()}
        for trial in content["trials"]
    ]
    (folder / "accepted.json").write_text(json.dumps(content))
    run = runs.client.create_run(runs.experiment_id, tags={"kind": "accepted"})
    runs.client.log_artifact(run.info.run_id, str(folder / "accepted.json"))
    runs.client.set_terminated(run.info.run_id)


@pytest.fixture
def runs(tracking: str) -> MlflowTrends:
    return MlflowTrends("nightly", tracking)


def test_the_newest_baseline_is_in_force(runs: MlflowTrends, tmp_path: Path) -> None:
    """Whichever version wrote it."""
    assert runs.baseline() is None
    write_as_version_0_1(runs, "first", tmp_path)
    assert runs.baseline() == baseline("first")
    runs.accept(baseline("second"))
    assert runs.baseline() == baseline("second")


def test_a_trend_goes_on_where_version_0_1_left_it(runs: MlflowTrends) -> None:
    """Points are counted on, and the baseline's mean is found under its former key."""
    from mlflow.entities import Metric

    client: Any = runs.client
    run = client.create_run(runs.experiment_id, tags={"kind": "trend", "trial": "base", "nights": "1"})
    old = [Metric("recall_05", 0.8, 1000, 1), Metric("accepted/recall_05", 0.7, 1000, 1)]
    client.log_batch(run.info.run_id, metrics=old)
    today = ScheduledRun(2000, {"recall@5": TrendPoint(0.9, 0.8, 0.95, 0.7, 0.0)})
    runs.log_gate(FinishedGate("launch-2", "fine", {"base": today}, {}))
    past = runs.history(["base"], ["recall@5"])["base"]
    assert [(run.points["recall@5"].mean, run.points["recall@5"].baseline) for run in past] == [(0.8, 0.7), (0.9, 0.7)]
    assert past[1].points["recall@5"] == today.points["recall@5"]
    assert math.isnan(past[0].points["recall@5"].low)
    assert client.get_run(run.info.run_id).data.tags["scheduled_runs"] == "2"
