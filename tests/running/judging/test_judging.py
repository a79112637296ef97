"""Judging a launch: pooling, cost, missing judgments, comparison, MLflow and the command line."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judged_experiments import PRICE, behave, study
from openai_server import Asked, Server, grade_all

from harness import plan, run
from harness.running.judging.judge_variance import judge_variance
from harness.running.judging.judging import Judging
from harness.running.judging.list_claims import claims
from harness.running.launch_history import stored_launch
from harness.running.models import Models, answers_of
from harness.running.session import Session
from judges import ContextPrecision, ContextRecall, HeuristicPrecision
from reports import compare, launch_report
from reports.comparison import text
from reports.judge_notes import variance_notes


def test_pairs_are_judged_once_over_all_trials(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """The predicted calls are those made, no (query, passage) is sent twice, and the cost matches the server."""
    lines: list[str] = []
    models = Models(price=PRICE, budget=1.0)
    launch = run(study(tmp_path), store=tmp_path / "s", log=False, notify=lines.append, models=models)
    precision, recall = launch.judging_report.judges
    graded = [asked for asked in server.calls if "Items:" not in asked.user]
    pairs = [(asked.question, passage) for asked in graded for passage in asked.fenced.values()]
    assert len(pairs) == len(set(pairs)) == precision.judgments
    # The thirteenth query finds nothing: there is nothing to ask.
    assert precision.naive == 12 * (1 + 1 + 2)
    assert precision.missing == precision.pooled == 12 * 2 == len(graded)
    assert precision.empty == 3
    assert recall.missing == len(server.calls) - len(graded)
    assert precision.cost in lines
    assert f"{precision.naive} calls trial by trial -> {precision.pooled} pooled -> {precision.missing} not" in lines[0]
    spend = launch.judging_report.spend
    assert spend.usd == pytest.approx((server.prompt_tokens * PRICE[0] + server.output_tokens * PRICE[1]) / 1e6)
    assert spend.usd <= (precision.estimate.max_usd or 0) + (recall.estimate.max_usd or 0) + 0.01
    server.asked.clear()
    again = run(study(tmp_path), store=tmp_path / "s", log=False, models=models)
    assert server.asked == []
    assert [dict(r.means()) for r in again.results] == [dict(r.means()) for r in launch.results]
    assert [r.fingerprint for r in again.results] == [r.fingerprint for r in launch.results]


def test_a_plan_shows_the_calls(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """An upper bound before retrieval, exact after it; nothing is sent."""
    before = plan(study(tmp_path), store=tmp_path / "s", models=Models(price=PRICE))
    assert server.asked == []
    launch = run(study(tmp_path), store=tmp_path / "s", log=False, models=Models(offline=True))
    after = plan(study(tmp_path), store=tmp_path / "s", models=Models(price=PRICE))
    assert launch.judging_report.spend.requests == 0
    exact = launch.judging_report.judges[0]
    bound = int(before.calls[0].split("at most ")[1].split()[0])
    assert bound >= exact.naive
    assert f"-> {exact.missing} not stored" in after.calls[0]
    assert server.asked == []


def test_scores_by_hand(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """The mean over queries of the fraction of passages whose length gives grade 2 or 3, computed from the rows."""
    launch = run(study(tmp_path), store=tmp_path / "s", log=False)
    session = Session(study(tmp_path), tmp_path / "s")
    judging = Judging(session, answers_of(session))
    for trial, result in zip(session.trials, launch.results, strict=True):
        rows = list(judging.rows(trial))
        means = [np.mean([len(p["text"]) % 4 >= 2 for p in row["kept"]] or [0]) for row in rows]
        assert result.judged["context_precision"].mean == pytest.approx(np.mean(means))
        assert [p["judged"]["context_precision"][0]["grade"] for p in rows[0]["kept"]] == [
            len(p["text"]) % 4 for p in rows[0]["kept"]
        ]
        exact = [
            np.mean([v["judgments"][0]["grade"] == 2 for v in row["judges"]["context_recall"]["findings"]])
            for row in rows
            if row["evidence"]
        ]
        assert result.judged["context_recall"].mean == pytest.approx(np.mean(exact))
        assert result.judged["context_recall"].total == 12  # the query without evidence is left out, and counted


def test_a_launch_read_back_has_its_judgments(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """`compare` finds them in the store and sends nothing."""
    launch = run(study(tmp_path), store=tmp_path / "s", log=False)
    server.asked.clear()
    again = stored_launch(study(tmp_path), store=tmp_path / "s")
    assert again.results[0].means() == pytest.approx(launch.results[0].means(), nan_ok=True)
    assert compare(again, on="context_recall").rows[0].mean == launch.results[0].mean("context_recall")
    assert server.asked == []


def test_a_new_threshold_costs_nothing(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """A new threshold or k reuses the judgments; the scores change."""
    run(study(tmp_path, ContextPrecision("m")), store=tmp_path / "s", log=False)
    server.asked.clear()
    strict = run(study(tmp_path, ContextPrecision("m", relevant_from=3, k=2)), store=tmp_path / "s", log=False)
    assert server.asked == []
    assert strict.results[2].mean("context_precision") != 0


def test_repeats_are_separate_calls(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """Three repeats are three calls; disagreement is reported."""
    count: dict[str, int] = {}

    def wavering(asked: Asked) -> Any:
        def grade(question: str, passage: str) -> int:
            key = question + passage
            count[key] = count.get(key, 0) + 1
            return 3 if count[key] == 2 else 0

        return grade_all(asked, grade)

    server.behave = wavering
    grid = {"selector.k": [2]}
    launch = run(study(tmp_path, ContextPrecision("m", repeats=3), grid=grid), store=tmp_path / "s", log=False)
    assert set(count.values()) == {3}
    assert launch.judging_report.judges[0].flips == 1.0
    assert launch.results[0].mean("context_precision") == pytest.approx(12 / 13 / 3)
    assert launch.session is not None
    assert launch.judging is not None
    # Of 13 queries the one without passages is 0 in all repeats; the others are 0, 1, 0: a variance of 1/3.
    found = judge_variance(launch.judging, launch.session.trials[0])["context_precision"]
    assert found.repeat == pytest.approx(12 / 13 / 3)
    assert found.query == 0
    assert np.isnan(found.order)
    assert "100% between repeats" in variance_notes(launch, 0)[0]


def test_comparisons_say_what_the_judge_is(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """Uncalibrated, also when read back; if nothing is stored for another server, its address is shown."""
    launch = run(study(tmp_path), store=tmp_path / "s", log=False)
    assert "context_precision: m, uncalibrated" in text(compare(launch, on="context_precision"))
    again = stored_launch(study(tmp_path), store=tmp_path / "s")
    assert "context_precision: m, uncalibrated" in text(compare(again, on="context_precision"))
    elsewhere = study(tmp_path, ContextPrecision("m", base_url="http://127.0.0.1:9/v1"))
    output = text(compare(stored_launch(elsewhere, store=tmp_path / "s"), on="context_precision"))
    assert "never sent to m at http://127.0.0.1:9/v1" in " ".join(output.split())


def test_claims_of_the_answer(server: Server, make_data: Callable[..., Path], tmp_path: Path) -> None:
    """Extracted once by the model, or given in the data; then judged like evidence."""
    make_data(
        [{"id": "d", "text": "Tulips flower in April. They like the sun. Water them twice a week."}],
        [
            {"id": "a", "text": "When do tulips flower?", "evidence": [], "answer": "In April; they like the sun."},
            {
                "id": "b",
                "text": "How are tulips watered?",
                "evidence": [],
                "answer": "Twice a week.",
                "metadata": {"claims": ["Water them twice a week.", "Use rain water."]},
            },
        ],
        name="garden",
    )

    def listing(asked: Asked) -> Any:
        if asked.slots == ["answer"]:
            return {"answer": {"claims": ["Tulips flower in April.", "Tulips hate shade."]}}
        return behave(asked)

    server.behave = listing
    made = study(tmp_path, ContextRecall("m", of="answer"), grid={"selector.k": [3, 4]})
    launch = run(made, store=tmp_path / "s", log=False)
    assert sum(asked.slots == ["answer"] for asked in server.calls) == 1
    assert launch.results[0].judged["context_recall"].values.tolist() == [0.5, 0.5]
    listed = claims(made, tmp_path / "s", Models(offline=True), lambda _: None)
    assert listed["a"] == ("Tulips flower in April.", "Tulips hate shade.")
    assert listed["b"] == ("Water them twice a week.", "Use rain water.")


def test_judgments_in_mlflow(server: Server, garden_data: Path, tmp_path: Path, tracking: str) -> None:
    """Means, bounds, completeness and params; labels and reasons per passage in the table and the rows."""
    from mlflow import MlflowClient

    made = study(tmp_path, ContextPrecision("m"), HeuristicPrecision())
    launch = run(made, store=tmp_path / "s", tracking=tracking, models=Models(price=PRICE), report=launch_report)
    client = MlflowClient(tracking)
    (experiment,) = client.search_experiments(filter_string="name = 'judged'")
    runs = client.search_runs([experiment.experiment_id], "tags.kind = 'trial'", order_by=["attributes.start_time"])
    assert len(runs) == 3
    by_name = {found.info.run_name: found for found in runs}
    for result in launch.results:
        found = by_name[result.name]
        judged = result.judged["context_precision"]
        assert found.data.metrics["context_precision"] == round(judged.mean, 4)
        assert found.data.metrics["judge/context_precision_complete"] == judged.complete == 13
        assert found.data.metrics["judge/context_precision_lo"] == round(judged.bounds[0], 4)
        assert "ci/context_precision_lo" in found.data.metrics
        assert found.data.params["judge.context_precision"] == "m"
        assert found.data.params["judge.heuristic_precision"] == "no model"
    folder = Path(client.download_artifacts(runs[0].info.run_id, ""))
    rows = [json.loads(line) for line in gzip.decompress((folder / "per_query.jsonl.gz").read_bytes()).splitlines()]
    assert rows[0]["kept"][0]["judged"]["context_precision"][0]["why"] == "seen"
    table = json.loads((folder / "eval/per_query.json").read_text())
    assert "context_precision" in table["columns"]
    assert "[" in table["data"][0][1]
    assert table["data"][0][-1].startswith(f"context_precision: 1[{len(rows[0]['kept'][0]['text']) % 4}] seen; 2[")
    exact = json.loads((folder / "metrics.json").read_text())["judged"]["context_precision"]
    assert (exact["complete"], exact["total"], exact["withheld"]) == (13, 13, False)
    (grid,) = client.search_runs([experiment.experiment_id], "tags.kind = 'launch'")
    note = grid.data.tags["mlflow.note.content"]
    assert "| trial | context_precision | heuristic_precision |" in note
    assert "uncalibrated" in note
    assert grid.data.metrics["llm/usd"] == pytest.approx(launch.judging_report.spend.usd, rel=0.005)
    server.asked.clear()
    run(made, store=tmp_path / "s", tracking=tracking)
    assert len(client.search_runs([experiment.experiment_id], "tags.kind = 'trial'")) == 3
