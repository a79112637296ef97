"""What every tracker does, alone and several at once; and the lines of the JSON-lines tracker."""

import gzip
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import ConfigError, DataError, Experiment, HarnessError, gate, run
from harness.evaluation.baseline import Baseline, BaselineTrial
from harness.tracking import FinishedGate, ScheduledRun, Tracker, TrendPoint, open_tracker
from reports import accept_launch

TRIAL = BaselineTrial("base", {"chunker": "fixed"}, "f", {"recall@5": ([1.0], [1.0])}, [["found"]])
HARNESS = str(Path(sys.executable).parent / "harness")


def baseline(why: str, when: str = "2026-11-01 02:00 UTC") -> Baseline:
    return Baseline("nightly", "launch-1", "ada", when, why, {"coverage": 0.5}, ["q1"], [TRIAL])


def scheduled(launch: str, when: int, mean: float) -> FinishedGate:
    point = TrendPoint(mean, mean - 0.1, math.nan, 0.7, 1.0)
    return FinishedGate(launch, "worse", {"base": ScheduledRun(when, {"recall@5": point})}, {"gate.md": b"## worse\n"})


@pytest.fixture(params=["mlflow", "jsonl", "both"])
def destinations(request: pytest.FixtureRequest, tracking: str, tmp_path: Path) -> list[str]:
    """Every tracker, and two at once."""
    known = {"mlflow": [tracking], "jsonl": [f"jsonl:{tmp_path / 'runs'}"]}
    return known.get(request.param) or known["mlflow"] + known["jsonl"]


def opened(destinations: list[str], tmp_path: Path) -> Tracker:
    return open_tracker("nightly", destinations, tmp_path / "store")


def test_the_newest_baseline_is_used(destinations: list[str], tmp_path: Path) -> None:
    """It reads back unchanged, in another process too: each tracker here is opened again."""
    assert opened(destinations, tmp_path).baseline() is None
    for why in ("first", "second"):
        opened(destinations, tmp_path).accept(baseline(why))
        assert opened(destinations, tmp_path).baseline() == baseline(why)


def test_scheduled_runs_read_back_in_their_order(destinations: list[str], tmp_path: Path) -> None:
    """A value that does not exist stays NaN; a trial or metric that was never gated has no runs."""
    for number, mean in enumerate((0.8, 0.9)):
        opened(destinations, tmp_path).log_gate(scheduled(f"l{number}", 1000 + number, mean))
    found = opened(destinations, tmp_path).history(["base", "other"], ["recall@5", "mrr"])
    assert [run.points["recall@5"].mean for run in found["base"]] == [0.8, 0.9]
    assert all(math.isnan(run.points["recall@5"].high) and set(run.points) == {"recall@5"} for run in found["base"])
    assert found["other"] == []


def test_a_launch_is_logged_once_and_its_links_lead_somewhere(
    study: Experiment, destinations: list[str], tmp_path: Path
) -> None:
    """Each destination has its own links."""
    for _ in range(2):
        launch = run(study, store=tmp_path / "store", tracking=destinations)
    assert len(launch.logged) == len(destinations)
    assert all(pages for pages in launch.logged.values())
    if destinations[-1].startswith("jsonl:"):
        lines = read(tmp_path / "runs" / study.name / "runs.jsonl")
        assert [line["kind"] for line in lines] == [*["trial"] * 4, "launch", "launch"]


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_lines_hold_the_exact_numbers(study: Experiment, tmp_path: Path) -> None:
    """Every mean to the last bit; the per-query records are those of the results; the report is a file."""
    launch = run(study, store=tmp_path / "store", tracking=f"jsonl:{tmp_path / 'runs'}")
    folder = tmp_path / "runs" / study.name
    *trials, logged = read(folder / "runs.jsonl")
    for line, result in zip(trials, launch.results, strict=True):
        assert line["name"] == result.name
        assert line["metrics"] == {name: None if math.isnan(x) else x for name, x in result.means().items()}
        low, high = line["intervals"][launch.primary]
        assert low <= result.mean(launch.primary) <= high
        with gzip.open(folder / line["files"] / "per_query.jsonl.gz", "rt") as file:
            rows = [json.loads(text) for text in file]
        assert [row["query_id"] for row in rows] == list(result.queries)
        scored = [row["scores"][launch.primary] for row in rows]
        assert scored == [None if math.isnan(x) else x for x in result.scores[launch.primary].tolist()]
    assert [trial["fingerprint"] for trial in logged["trials"]] == [result.fingerprint for result in launch.results]
    assert {trial["verdict"] for trial in logged["trials"]} >= {"■ baseline"}
    assert (folder / logged["files"] / "report.html").is_file()


def test_a_line_cut_off_by_a_kill_is_dropped(tmp_path: Path) -> None:
    """Reading skips it, the next line replaces it, and nothing before it is lost."""
    destination = [f"jsonl:{tmp_path / 'runs'}"]
    opened(destination, tmp_path).accept(baseline("kept"))
    path = tmp_path / "runs/nightly/runs.jsonl"
    with path.open("a") as file:
        file.write('{"kind": "baseline", "file": "nowh')
    assert opened(destination, tmp_path).baseline() == baseline("kept")
    opened(destination, tmp_path).accept(baseline("new"))
    assert [line["why"] for line in read(path)] == ["kept", "new"]


def test_two_experiments_in_one_folder(tmp_path: Path) -> None:
    """Their names differ only in characters that a folder cannot have; each has its own baseline."""
    one, other = (open_tracker(name, f"jsonl:{tmp_path / 'runs'}", tmp_path) for name in ("a/b", "a-b"))
    one.accept(baseline("one"))
    assert other.baseline() is None
    other.accept(replace(baseline("other"), launch="launch-2"))
    assert one.baseline() == baseline("one")


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    """A complete line that is not JSON was not left by a kill."""
    destination = [f"jsonl:{tmp_path / 'runs'}"]
    opened(destination, tmp_path).accept(baseline("kept"))
    path = tmp_path / "runs/nightly/runs.jsonl"
    path.write_text("not json\n" + path.read_text())
    with pytest.raises(DataError, match=r"runs\.jsonl: the line that ends at byte 9 is not JSON"):
        opened(destination, tmp_path).baseline()
    path.write_text("")
    (path.parent / "baselines/launch-1/baseline.json").unlink()
    opened(destination, tmp_path).accept(baseline("again"))
    (path.parent / "baselines/launch-1/baseline.json").write_text("{")
    with pytest.raises(DataError, match=r"baseline\.json: cannot be read.*accept a baseline again"):
        opened(destination, tmp_path).baseline()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("jsonl:", "write jsonl:FOLDER"),
        (["jsonl:{file}s", "JSONL:{file}s/"], "given twice"),
        ("jsonl:{file}", "cannot be written"),
    ],
)
def test_a_wrong_destination_is_one_line(given: Any, message: str, tmp_path: Path) -> None:
    """It says what would be right."""
    (tmp_path / "file").write_text("")
    file = tmp_path / "file"
    given = given.format(file=file) if isinstance(given, str) else [one.format(file=file) for one in given]
    with pytest.raises(ConfigError, match=message):
        open_tracker("n", given, tmp_path)


def test_a_folder_that_becomes_unwritable_is_one_line(tmp_path: Path) -> None:
    """The error says that computed results are kept."""
    tracker = opened([f"jsonl:{tmp_path / 'runs'}"], tmp_path)
    (tmp_path / "runs/nightly/baselines").write_text("a file where a folder should be")
    with pytest.raises(HarnessError, match="computed results are kept"):
        tracker.accept(baseline("why"))


def test_the_newest_baseline_of_several_destinations_is_used(tracking: str, tmp_path: Path) -> None:
    """One was accepted while only one destination was named."""
    jsonl = f"jsonl:{tmp_path / 'runs'}"
    opened([tracking, jsonl], tmp_path).accept(baseline("both"))
    opened([jsonl], tmp_path).accept(baseline("later", "2026-11-02 02:00 UTC"))
    found = opened([tracking, jsonl], tmp_path).baseline()
    assert found is not None
    assert found.why == "later"


def test_the_gate_needs_no_server(study: Experiment, tmp_path: Path) -> None:
    """Baseline, verdict and trend with JSON lines alone; MLflow is not imported."""
    given: Any = {"store": tmp_path / "store", "tracking": f"jsonl:{tmp_path / 'runs'}"}
    with pytest.raises(ConfigError, match="no baseline of .* has been accepted in jsonl:"):
        gate(study, **given)
    accept_launch(study, why="first", who="Ada", **given)
    for count in (1, 2):
        found = gate(study, **given)
        assert (found.verdict, [len(runs) for runs in found.history.values()]) == ("fine", [count] * 4)
    (links,) = found.logged.values()
    assert Path(links["Gate"], "gate.json").is_file()
    assert Path(links["Runs"]).is_file()


def test_without_mlflow(garden_data: Path, tmp_path: Path) -> None:
    """`--no-mlflow` keeps the other destinations, and nothing of MLflow is imported or written."""
    file = tmp_path / "x.yaml"
    file.write_text(f"name: x\ndata: {garden_data}\nchunker: fixed\nretriever: bm25\nmetrics: [recall@5]\n")
    command = [HARNESS, "run", str(file), "--no-mlflow", "--tracking", "jsonl:out"]
    environment = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert f"In {tmp_path / 'out' / 'x'}:" in done.stdout
    assert "import time:" in done.stderr
    assert "| mlflow" not in done.stderr
    done = subprocess.run([*command, "--tracking", "sqlite:///m.db"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, (tmp_path / "m.db").exists()) == (2, False)
    assert "--no-mlflow contradicts --tracking sqlite:///m.db" in done.stderr


def test_a_secret_that_is_part_of_a_number_or_key(
    study: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only texts are redacted: numbers and keys stay, and the lines stay JSON."""
    monkeypatch.setenv("DB_PASSWORD", "recall@3")
    for number in ("666666", "333333", "metrics", "beds"):
        monkeypatch.setenv("SOME_API_KEY", number)
        destination = f"jsonl:{tmp_path / number}"
        launch = run(study, store=tmp_path / "store", tracking=destination)
        (runs,) = (tmp_path / number).glob("*/runs.jsonl")
        *trials, _ = read(runs)
        assert [line["metrics"] for line in trials] == [
            {name: None if math.isnan(x) else x for name, x in result.means().items()} for result in launch.results
        ]
        for file in runs.parent.rglob("*.json"):
            json.loads(file.read_text())
        opened([destination], tmp_path).accept(baseline("number 666666 and metrics"))


def test_a_secret_in_the_name_of_a_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of trials are keys of a scheduled run."""
    monkeypatch.setenv("SOME_API_KEY", "sk-Abcdefgh12345678")
    point = TrendPoint(0.8, 0.7, 0.9, 0.7, 0.0)
    gate = FinishedGate("l", "fine", {"model=sk-Abcdefgh12345678": ScheduledRun(1, {"recall@5": point})}, {})
    opened([f"jsonl:{tmp_path / 'runs'}"], tmp_path).log_gate(gate)
    assert "Abcdefgh" not in (tmp_path / "runs/nightly/runs.jsonl").read_text()


def test_a_line_without_its_fields_is_one_line(tmp_path: Path) -> None:
    """Whatever wrote it."""
    destination = [f"jsonl:{tmp_path / 'runs'}"]
    opened(destination, tmp_path).log_gate(scheduled("l1", 1000, 0.8))
    path = tmp_path / "runs/nightly/runs.jsonl"
    path.write_text(path.read_text() + '{"kind": "scheduled_run", "experiment": "nightly"}\n')
    with pytest.raises(DataError, match="a scheduled run cannot be read"):
        opened(destination, tmp_path).history(["base"], ["recall@5"])
