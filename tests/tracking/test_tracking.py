"""What is logged to MLflow: keys, curves, artifacts and saved views, without duplicates."""

import base64
import gzip
import json
import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import Experiment, Launch, Trial, run
from harness.core.errors import HarnessError
from harness.tracking.mlflow_fields import metric_key
from reports import launch_report


def launched(study: Experiment, tracking: str, tmp_path: Path) -> tuple[Launch, Any, list[Any]]:
    from mlflow import MlflowClient

    launch = run(study, store=tmp_path / "store", tracking=tracking, report=launch_report)
    client = MlflowClient(tracking)
    found = client.get_experiment_by_name("beds")
    assert found is not None
    return launch, client, list(client.search_runs([found.experiment_id], order_by=["attributes.start_time ASC"]))


def test_a_launch_in_mlflow(study: Experiment, tracking: str, tmp_path: Path) -> None:
    """Four flat trial runs and a launch run with the same tag; the complete content of one trial run."""
    launch, client, runs = launched(study, tracking, tmp_path)
    trials = [run for run in runs if run.data.tags["kind"] == "trial"]
    assert [run.info.run_name for run in trials] == [result.name for result in launch.results]
    assert {run.data.tags["launch"] for run in runs} == {launch.id}
    assert not any("mlflow.parentRunId" in run.data.tags for run in runs)
    first, result = trials[0], launch.results[0]
    assert first.data.params == dict(result.params)
    assert first.data.params["chunker.size"] == "20"
    assert first.data.metrics["recall_03"] == round(result.mean("recall@3"), 4)
    for key in (
        "lat_p50_ms",
        "context_tokens",
        "chunks",
        "loss/found",
        "queries/unanswerable",
        "selector/top_k_kept",
    ):
        assert key in first.data.metrics
    curve = client.get_metric_history(first.info.run_id, "curve/recall_vs_tokens")
    assert [point.step for point in curve] == [50, 125, 250, 500, 1000, 2000, 4000]
    assert first.inputs.dataset_inputs[0].dataset.name == "garden@validation"
    folder = Path(client.download_artifacts(first.info.run_id, "", str(tmp_path)))
    table = json.loads((folder / "eval/per_query.json").read_text())
    assert table["columns"][:2] == ["query", "result"]
    output = dict(zip(table["columns"], table["data"][-1], strict=True))
    assert re.fullmatch(r"top_k \d+: below rank \d+", output["dropped"])
    lost = [
        row
        for row, evidence_outcomes in zip(table["data"], result.evidence_outcomes, strict=True)
        if any(f != "found" for f in evidence_outcomes)
    ]
    assert lost
    assert all(re.search(r"lost: (split|not_retrieved|dropped:top_k)", row[1]) for row in lost)
    assert all(re.search(r" · 1[✓✗] “[^”]+” \(bed\d\)", row[1]) for row in table["data"])
    assert len(table["data"]) == len(result.queries)
    rows = [json.loads(line) for line in gzip.decompress((folder / "per_query.jsonl.gz").read_bytes()).splitlines()]
    assert rows[0]["scores"]["recall@3"] == result.scores["recall@3"][0]
    assert all(pick["reason"] and pick["step"] for row in rows for pick in row["dropped"])
    # The data set's setting for copies is part of the trial as it ran.
    assert Trial.from_json((folder / "trial.json").read_text()) == replace(study.trials()[0], copies="credit")
    exact = json.loads((folder / "metrics.json").read_text())
    assert exact["metrics"]["recall@3"] == result.mean("recall@3")


def test_logging_again_adds_only_the_launch(study: Experiment, tracking: str, tmp_path: Path) -> None:
    """A second run adds its launch and tags the same four trials with it."""
    _, _, before = launched(study, tracking, tmp_path)
    second, _, after = launched(study, tracking, tmp_path)
    assert len(after) == len(before) + 1
    assert {run.data.tags["launch"] for run in after if run.data.tags["kind"] == "trial"} == {second.id}
    assert second.work == {}


def test_an_unfinished_trial_is_logged_again(study: Experiment, tracking: str, tmp_path: Path) -> None:
    """A run killed while logging is RUNNING: it is deleted, and the trial is logged again."""
    _, client, runs = launched(study, tracking, tmp_path)
    broken = next(run for run in runs if run.data.tags["kind"] == "trial")
    client.set_terminated(broken.info.run_id, "RUNNING")
    _, _, after = launched(study, tracking, tmp_path)
    same = [run for run in after if run.data.tags.get("fingerprint") == broken.data.tags["fingerprint"]]
    assert [run.info.status for run in same] == ["FINISHED"]
    assert same[0].info.run_id != broken.info.run_id


def test_a_trial_deleted_in_mlflow_is_logged_again(study: Experiment, tracking: str, tmp_path: Path) -> None:
    """The store is the source of truth."""
    _, client, runs = launched(study, tracking, tmp_path)
    client.delete_run(next(run.info.run_id for run in runs if run.data.tags["kind"] == "trial"))
    _, _, after = launched(study, tracking, tmp_path)
    assert sum(run.data.tags["kind"] == "trial" for run in after) == 4


def test_saved_views(study: Experiment, tracking: str, tmp_path: Path) -> None:
    """Each link refers to a view stored under its key and filtered to this launch."""
    launch, client, _ = launched(study, tracking, tmp_path)
    found = client.get_experiment_by_name("beds")
    assert set(launch.links) == {"Leaderboard", "Charts", "Query by query", "Launches", "Traces"}
    for link in [link for name, link in launch.links.items() if name != "Traces"]:
        key = link.split("viewStateShareKey=")[1].split("&")[0]
        stored = json.loads(found.tags[f"mlflow.sharedViewState.{key}"])
        state = json.loads(zlib.decompress(base64.b64decode(stored["state"].removeprefix("deflate;"))))
        assert launch.id in state["searchFilter"] or key == "launches"
    assert "metrics.`recall_50t`" in state["orderByKey"] or key == "launches"


def test_the_report_is_logged_with_the_launch(study: Experiment, tracking: str, tmp_path: Path) -> None:
    """Comparison, leaderboard and figures; the comparison is also the run's note."""
    _, client, runs = launched(study, tracking, tmp_path)
    launch = next(run for run in runs if run.data.tags["kind"] == "launch")
    names = {item.path for item in client.list_artifacts(launch.info.run_id)}
    pictures = {"recall_over_budget.svg", "score_bins.svg", "report.html"}
    assert names == {"comparison.md", "comparison.json", "leaderboard.json", "score_bins.json", *pictures}
    assert "**Which?**" in launch.data.tags["mlflow.note.content"]
    trials = [run.data.tags for run in runs if run.data.tags["kind"] == "trial"]
    assert [tags["verdict"] for tags in trials].count("■ baseline") == 1
    assert all({"compared_on", "baseline", "difference", "p", "p_best", "may_be_best"} <= set(tags) for tags in trials)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("recall@5", "recall_05"),
        ("recall@100", "recall_100"),
        ("recall@1000t", "recall_1000t"),
        ("iprec@0.1", "iprec_0.1"),
        ("mrr", "mrr"),
    ],
)
def test_metric_keys(name: str, key: str) -> None:
    """MLflow does not allow `@` and sorts keys as text."""
    assert metric_key(name) == key


def test_an_unusable_tracking_store_is_an_error(study: Experiment, tmp_path: Path) -> None:
    """One line that names the remedy."""
    (tmp_path / "broken.db").write_text("this is no database, " * 100)
    with pytest.raises(HarnessError, match="--no-mlflow"):
        run(study, store=tmp_path / "store", tracking=f"sqlite:///{tmp_path / 'broken.db'}")
