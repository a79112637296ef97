"""Judging a launch: pooling, cost, missing judgments, comparison, MLflow and the command line."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openai_server import Asked, Raw, Server, completion, grade_all

from harness import Compare, Experiment, Trial, plan, run
from harness.components.chunkers import Fixed
from harness.components.retrievers import BM25
from harness.components.selectors import TopK
from harness.core.errors import ConfigError, JudgeError
from harness.running.judging.judging import Judging
from harness.running.judging.list_claims import claims
from harness.running.launch_history import stored_launch
from harness.running.models import Models, answers_of
from harness.running.session import Session
from judges import ContextPrecision, ContextRecall, HeuristicPrecision, HeuristicRecall
from reports import compare, launch_report
from reports.comparison import text
from reports.judge_notes import judge_notes, judge_table, variance_notes

HARNESS = Path(sys.executable).parent / "harness"
PRICE = (1.0, 2.0)


def behave(asked: Asked) -> Any:
    """Grade passages by their length; find no item."""
    if asked.slots[0].startswith("g"):
        return {slot: {"status": "none", "slots": [], "quote": ""} for slot in asked.slots}
    return grade_all(asked, lambda _, text: len(text) % 4)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    with Server(behave) as running:
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


def study(base_dir: Path, *judges: Any, grid: Any = None, **settings: Any) -> Experiment:
    base = Trial(
        "garden",
        Fixed(20),
        BM25(),
        tokenizer="words",
        selector=(TopK(k=4),),
        judges=judges or (ContextPrecision("m", batch=4), ContextRecall("m")),
        metrics=("recall@3",),
    )
    return Experiment("judged", base, grid or {"selector.k": [2, 4, 6]}, base_dir=base_dir, **settings)


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
    found = launch.judging.variance(launch.session.trials[0])["context_precision"]
    assert found.repeat == pytest.approx(12 / 13 / 3)
    assert found.query == 0
    assert np.isnan(found.order)
    assert "100% between repeats" in variance_notes(launch, 0)[0]


OWN = """
from dataclasses import dataclass
from typing import ClassVar

from harness.components import AnswerSchema, Choice, Finding, Label, LlmJudge, Prompt, Score, Task, Verdict
from judges import ContextPrecision


@dataclass(frozen=True)
class Coin(LlmJudge):
    \"\"\"Says yes or no.\"\"\"

    takes: bool = True
    measures: ClassVar = ("coin",)

    def tasks(self, case):
        return [Task("", (p.text,), take=t) for p in case.passages for t in range(self.repeats if self.takes else 1)]

    def batches(self, tasks):
        return [(task,) for task in sorted(tasks)]

    def prompt(self, batch):
        schema = AnswerSchema((("yes", Choice(("yes", "no"))),))
        return Prompt("", batch[0].texts[0], schema, {"text": batch[0]}, output=5)

    def read(self, task, entry, prompt):
        return Label(int(entry["yes"] == "yes"))

    def score(self, case, judgments):
        return Verdict({"coin": Score.exactly(0.5)})


@dataclass(frozen=True)
class Strict(ContextPrecision):
    \"\"\"Measures what its parent does.\"\"\"


@dataclass(frozen=True)
class Broken(Coin):
    \"\"\"Forgets its measure.\"\"\"

    def score(self, case, judgments):
        return Verdict({"other": None})
"""


def own(tmp_path: Path, name: str, **settings: Any) -> Any:
    from harness.experiment.catalog import component

    (tmp_path / "own.py").write_text(OWN)
    return component("judge", {f"own.py:{name}": {"model": "m", **settings}}, where="x", base_dir=tmp_path)


def test_flips_of_a_judge_without_a_threshold(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """Yes, no, yes is disagreement, although the grades 0 and 1 are both below 2."""
    seen: dict[str, int] = {}

    def wavering(asked: Asked) -> Any:
        seen[asked.user] = seen.get(asked.user, 0) + 1
        return {"text": {"yes": "no" if seen[asked.user] == 2 else "yes"}}

    server.behave = wavering
    made = study(tmp_path, own(tmp_path, "Coin", repeats=3), grid={"selector.k": [2]})
    assert run(made, store=tmp_path / "s", log=False).judging_report.judges[0].flips == 1.0


@pytest.mark.parametrize(
    ("judges", "expected"),
    [
        ([("Coin", {"repeats": 2, "takes": False})], "repeats: its tasks have no `take`"),
        ([("Broken", {})], "judge broken: query 'bed0-2': score returned other; its measures are coin"),
        ([("Strict", {}), None], "strict and context_precision both measure 'context_precision'"),
    ],
)
def test_invalid_judges_give_one_line(
    judges: Any, expected: str, server: Server, garden_data: Path, tmp_path: Path
) -> None:
    """It names the judge and what is expected."""
    server.behave = lambda asked: {"text": {"yes": "yes"}}
    made = [ContextPrecision("m") if one is None else own(tmp_path, one[0], **one[1]) for one in judges]
    with pytest.raises(ConfigError, match=re.escape(expected)):
        run(study(tmp_path, *made), store=tmp_path / "s", log=False)


def test_comparisons_say_what_the_judge_is(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """Uncalibrated, also when read back; if nothing is stored for another server, its address is shown."""
    launch = run(study(tmp_path), store=tmp_path / "s", log=False)
    assert "context_precision: m, uncalibrated" in text(compare(launch, on="context_precision"))
    again = stored_launch(study(tmp_path), store=tmp_path / "s")
    assert "context_precision: m, uncalibrated" in text(compare(again, on="context_precision"))
    elsewhere = study(tmp_path, ContextPrecision("m", base_url="http://127.0.0.1:9/v1"))
    output = text(compare(stored_launch(elsewhere, store=tmp_path / "s"), on="context_precision"))
    assert "never sent to m at http://127.0.0.1:9/v1" in " ".join(output.split())


def test_an_insufficient_budget_is_reported_first(server: Server, garden_data: Path, tmp_path: Path) -> None:
    """A budget on a model without a price is an error before retrieval."""
    lines: list[str] = []
    run(study(tmp_path), store=tmp_path / "s", log=False, notify=lines.append, models=Models(0.001, PRICE))
    assert "--budget 0.001 is less than the $" in lines[-1]
    with pytest.raises(JudgeError, match="--price"):
        run(study(tmp_path), store=tmp_path / "t", log=False, models=Models(0.001))
    assert not list((tmp_path / "t").glob("objects/*"))


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


def test_judges_without_a_model(garden_data: Path, tmp_path: Path) -> None:
    """They need no key, server or money, which a note says; retrieved evidence counts in full."""
    launch = run(study(tmp_path, HeuristicPrecision(), HeuristicRecall()), store=tmp_path / "s", log=False)
    assert launch.judging_report.spend.requests == 0
    result = launch.results[2]
    assert result.judged["heuristic_recall"].complete == result.judged["heuristic_recall"].total == 12
    assert result.mean("heuristic_recall") >= result.mean("recall@3")
    assert any("no LLM was used" in note for note in judge_notes(launch))
    assert judge_table(launch)


def test_data_that_cannot_be_judged_are_an_error(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """The error is raised before any call."""
    make_data([{"id": "d", "text": "Tulips."}], [{"id": "q", "text": "T?", "evidence": [{"doc": "d"}]}], name="garden")
    for judge, message in (
        (ContextRecall("m"), "document-level evidence"),
        (ContextRecall("m", of="answer"), "no query has"),
    ):
        with pytest.raises(ConfigError, match=message):
            run(study(tmp_path, judge), store=tmp_path / "s", log=False)


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


# -- through the command line


@pytest.fixture
def project(garden_data: Path, tmp_path: Path, server: Server) -> Path:
    """A folder with an experiment file."""
    (tmp_path / "x.yaml").write_text(
        "name: cli\ndata: garden\ntokenizer: words\nchunker: {fixed: {size: 20}}\nretriever: bm25\n"
        "selector: {top_k: {k: 4}}\nmetrics: [recall@3]\njudges: [{context_precision: {model: m, batch: 1}}]\n"
        "grid: {selector.k: [2, 4]}\ncompare: {on: context_precision}\n"
    )
    return tmp_path


def harness(project: Path, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **more.pop("env", {})}
    return subprocess.run(
        [HARNESS, *arguments], cwd=project, capture_output=True, text=True, check=False, env=environment, **more
    )


def test_the_command_line_judges(project: Path, server: Server) -> None:
    """The cost, then means with their completeness, exit code 0; the key is stored and printed nowhere."""
    key = "sk-secret-0123456789"
    done = harness(project, "run", "x.yaml", "--price", "1,2", "--budget", "0.5", env={"OPENAI_API_KEY": key})
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("context_precision (m): 72 calls trial by trial -> 48 pooled -> 48 not stored; about ")
    assert "context_precision against the baseline" in done.stdout
    assert "uncalibrated" in done.stdout
    assert f"usage: 48 calls in 49 requests, {server.prompt_tokens} tokens in" in done.stdout
    assert key not in done.stdout + done.stderr
    for file in project.rglob("*"):
        assert not file.is_file() or key.encode() not in file.read_bytes()
    planned = harness(project, "plan", "x.yaml", "--price", "1,2")
    assert "-> 48 pooled -> 0 not stored; nothing to ask" in planned.stdout
    compared = harness(project, "compare", "x.yaml", "--metric", "ap_at_k")
    assert compared.returncode == 0
    assert "ap_at_k against the baseline" in compared.stdout


def test_missing_judgments_are_not_exit_code_0(project: Path, server: Server) -> None:
    """The exit code is 3, cannot tell; available scores are printed with bounds."""
    server.behave = lambda asked: Raw(500, b"", {"x-should-retry": "false"})
    done = harness(project, "run", "x.yaml", "--no-mlflow")
    assert done.returncode == 3
    assert "withheld (1/13) 0.000 … 0.923" in done.stdout
    assert "too many judgments are missing" in done.stderr
    offline = harness(project, "run", "x.yaml", "--no-mlflow", "--offline")
    assert offline.returncode == 3


def test_a_wrong_key_gives_one_line(project: Path, server: Server) -> None:
    """Exit code 2, no traceback."""
    server.probe = lambda asked: Raw(401, {"error": {"message": "Incorrect API key"}})
    done = harness(project, "run", "x.yaml", "--no-mlflow")
    assert done.returncode == 2
    assert done.stderr == f"harness: model m at {server.url}: auth: HTTP 401: Incorrect API key\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--budget", "1"], "the price of m at http://127.0.0.1"),
        (["--price", "cheap"], "--price cheap: write IN,OUT"),
        (["--budget", "-1"], "--budget -1: expected dollars"),
    ],
)
def test_wrong_options(arguments: list[str], expected: str, project: Path, server: Server) -> None:
    """One line, exit code 2, nothing sent."""
    done = harness(project, "run", "x.yaml", "--no-mlflow", *arguments)
    assert done.returncode == 2
    assert expected in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert server.asked == []


def test_a_killed_run_never_pays_twice(project: Path, server: Server) -> None:
    """After kill -9 during judging, finished pairs are not sent again, and the result is that of a single run."""
    for kills in (8, 21):
        seen = len(server.asked)
        process = subprocess.Popen(
            [HARNESS, "run", "x.yaml", "--no-mlflow"], cwd=project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

        def until(asked: Asked, process: Any = process, stop: int = seen + kills) -> Any:
            if len(server.asked) >= stop:
                process.send_signal(signal.SIGKILL)
                return Raw(hang=True)
            return behave(asked)

        server.behave = until
        process.wait()
    server.behave = behave
    done = harness(project, "run", "x.yaml", "--no-mlflow")
    assert done.returncode == 0, done.stderr
    sent = [asked.user for asked in server.calls]
    # Only requests in flight are repeated: at most 16 for each of two kills.
    assert len(sent) - len(set(sent)) <= 2 * 16
    fresh = harness(project, "run", "x.yaml", "--no-mlflow", "--store", "other")
    table = [line for line in done.stdout.splitlines() if line.startswith(" top_k") or "/13)" in line]
    assert table
    assert table == [line for line in fresh.stdout.splitlines() if line.startswith(" top_k") or "/13)" in line]


def test_two_launches_on_one_store(project: Path, server: Server) -> None:
    """Both succeed and print the same; each pair has one label."""
    command = [HARNESS, "run", "x.yaml", "--no-mlflow"]
    both = [subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    tables = [[line for line in out.splitlines() if "/13)" in line] for out in printed]
    assert tables[0] == tables[1] != []
    assert len(server.calls) <= 2 * 48


def test_an_interrupt_finishes_calls_in_flight(project: Path, server: Server) -> None:
    """After Ctrl-C nothing more is sent, received answers are kept, the partial result is printed, exit code 3."""
    process = subprocess.Popen(
        [HARNESS, "run", "x.yaml", "--no-mlflow"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def interrupting(asked: Asked) -> Any:
        if len(server.calls) == 10:
            process.send_signal(signal.SIGINT)
        return completion(behave(asked), asked)

    server.behave = interrupting
    out, err = process.communicate(timeout=120)
    assert process.returncode == 3, err
    assert "cancelled" in out
    sent = len(server.calls)
    assert sent < 48
    server.behave = behave
    assert harness(project, "run", "x.yaml", "--no-mlflow").returncode == 0
    assert len(server.calls) == 48
