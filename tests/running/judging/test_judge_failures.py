"""Missing judgments: bounds instead of values, withheld means, and what was finished is kept."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judged_experiments import PRICE, behave, study
from openai_server import Asked, Raw, Server, grade_all

from harness import Compare, run
from harness.core.errors import JudgeError
from harness.running.models import Models
from judges import ContextPrecision
from reports import compare, launch_report
from reports.comparison import text
from reports.judge_notes import judge_notes


def test_failures_leave_bounds_and_withhold_the_mean(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """If some queries fail, there is no mean but valid bounds, and a note names the kind of failure."""

    server.behave = lambda asked: (
        Raw(500, b"", {"x-should-retry": "false"}) if "row 0-" in asked.question else behave(asked)
    )
    launch = run(study(tmp_path, ContextPrecision("m")), store=tmp_path / "s", log=False)
    judged = launch.results[0].judged["context_precision"]
    assert 0 < judged.total - judged.complete < judged.total
    assert judged.withheld
    assert np.isnan(judged.mean)
    low, high = judged.bounds
    server.behave = behave
    whole = run(study(tmp_path, ContextPrecision("m")), store=tmp_path / "s", log=False)
    assert low <= whole.results[0].judged["context_precision"].mean <= high
    assert launch.withheld == ["context_precision", "ap_retrieved", "ap_at_k"]
    assert whole.withheld == []
    output = text(compare(launch, on="context_precision"))
    assert "withheld" in output
    assert "queries have a value; the mean is withheld" in output
    assert any("server" in note for note in judge_notes(launch))


def test_a_trial_cannot_gain_by_failing(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """If the worse half of a trial's queries fails, the comparison does not call it better."""
    server.behave = lambda asked: grade_all(asked, lambda _, text: 0)
    grid = {"selector.k": [2, 4]}
    launch = run(study(tmp_path, ContextPrecision("m"), grid=grid), store=tmp_path / "s", log=False)
    first, second = launch.results
    half = second.judged["context_precision"]
    assert (first.mean("context_precision"), half.mean) == (0.0, 0.0)
    values = np.where(np.arange(half.total) % 2 == 0, 1.0, np.nan)
    failing = replace(half, values=values, low=np.nan_to_num(values, nan=0.0), high=np.ones(half.total))
    doctored = replace(
        launch,
        results=[
            replace(first, judged={"context_precision": replace(half, max_failed=0.0)}),
            replace(second, judged={"context_precision": failing}),
        ],
    )
    rows = compare(doctored, on="context_precision").rows
    assert np.isnan(rows[1].mean)
    assert rows[1].low <= 0.5 <= rows[1].high
    backwards = replace(doctored, results=doctored.results[::-1])
    assert compare(backwards, on="context_precision").rows[1].verdict in ("worse", "cannot tell")


def test_an_insufficient_budget_is_reported_first(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """A budget on a model without a price is an error before retrieval."""
    lines: list[str] = []
    run(study(tmp_path), store=tmp_path / "s", log=False, notify=lines.append, models=Models(0.001, PRICE))
    assert "--budget 0.001 is less than the $" in lines[-1]
    with pytest.raises(JudgeError, match="--price"):
        run(study(tmp_path), store=tmp_path / "t", log=False, models=Models(0.001))
    assert not list((tmp_path / "t").glob("objects/*"))


def test_a_fatal_error_keeps_finished_judgments(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """The next run resumes from there."""
    good: list[Asked] = []

    def dying(asked: Asked) -> Any:
        if len(good) >= 5:
            return Raw(401, {"error": {"message": "key revoked"}})
        good.append(asked)
        return behave(asked)

    server.behave = dying
    slow = study(tmp_path, ContextPrecision("m", concurrency=1))
    with pytest.raises(JudgeError, match="auth"):
        run(slow, store=tmp_path / "s", log=False)
    server.behave = behave
    server.asked.clear()
    launch = run(slow, store=tmp_path / "s", log=False)
    assert launch.withheld == []
    assert not {a.user for a in good} & {a.user for a in server.calls}
    assert len(server.calls) == launch.judging_report.judges[0].pooled - 5


def test_a_withheld_mean_is_not_on_top(server: Server, garden_data: Path, tmp_path: Path, tracking: str) -> None:
    """The launch's top trial is one that has a mean, and withheld means are not logged."""
    from mlflow import MlflowClient

    # The fifth and sixth passage, which only the deepest trial selects, cannot be judged.
    server.behave = lambda asked: (
        grade_all(asked) if len(asked.fenced) == 4 else Raw(500, b"", {"x-should-retry": "false"})
    )
    made = study(tmp_path, ContextPrecision("m", batch=4), compare=Compare(on="context_precision"))
    first = replace(made, grid={"selector.k": [4]})
    run(first, store=tmp_path / "s", log=False)
    launch = run(replace(made, grid={"selector.k": [6, 4]}), store=tmp_path / "s", tracking=tracking)
    assert [np.isnan(result.mean("context_precision")) for result in launch.results] == [True, False]
    client = MlflowClient(tracking)
    (experiment,) = client.search_experiments(filter_string="name = 'judged'")
    (noted,) = client.search_runs([experiment.experiment_id], "tags.kind = 'launch'")
    assert noted.data.tags["top_trial"] == launch.results[1].name
    leaders = json.loads(launch_report(launch).files["leaderboard.json"])["data"]
    assert [row[0] for row in leaders] == [launch.results[1].name, launch.results[0].name]
    runs = client.search_runs([experiment.experiment_id], "tags.kind = 'trial'")
    assert sorted("context_precision" in found.data.metrics for found in runs) == [False, True]
    assert all("judge/context_precision_lo" in found.data.metrics for found in runs)
