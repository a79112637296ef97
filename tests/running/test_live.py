"""The state of a launch while it runs: in the store, in a terminal and in MLflow; nothing is left afterwards."""

import contextlib
import json
import os
import platform
from pathlib import Path
from typing import Any

import pytest
from project import FIRST, HARNESS, harness

from harness import Experiment, read_experiment, run
from harness.core.errors import HarnessError
from harness.core.progress import progress, watching
from harness.running.live import running, started

OWN = """
import subprocess, sys
from dataclasses import dataclass
from pathlib import Path
from harness import Chunker, Document, Spans

@dataclass(frozen=True)
class Watched(Chunker):
    def split(self, doc: Document) -> Spans:
        {}
        return [(0, len(doc.text))]
"""


@pytest.fixture
def watched(garden_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose chunker is the researcher's own; the state is written at every step."""
    monkeypatch.setattr("harness.running.live._FILE_SECONDS", -1.0)
    monkeypatch.setattr("harness.running.live._TRACKER_SECONDS", -1.0)
    (tmp_path / "x.yaml").write_text(FIRST.replace("{fixed: {size: 20}}", "own.py:Watched"))
    return tmp_path


def study(folder: Path, code: str) -> Experiment:
    (folder / "own.py").write_text(OWN.format(code))
    return read_experiment(folder / "x.yaml")


def mlflow_runs(tracking: str) -> list[Any]:
    from mlflow import MlflowClient

    client = MlflowClient(tracking)
    (found,) = client.search_experiments(filter_string="name = 'first'")
    return list(client.search_runs([found.experiment_id], "tags.kind = 'launch'"))


def test_watch_shows_a_launch(watched: Path) -> None:
    """From another process, while it runs; afterwards there is nothing to show."""
    seen = watched / "seen"
    command = [str(HARNESS), "watch", "--store", str(watched / "s")]
    code = f"Path({str(seen)!r}).write_text(subprocess.run({command!r}, capture_output=True, text=True).stdout)"
    launch = run(study(watched, code), store=watched / "s", log=False)
    shown = seen.read_text()
    assert shown.startswith(f"experiment 'first', launch {launch.id}, process {os.getpid()} on {platform.node()}\n")
    assert "0 of 1 trial finished" in shown
    assert "augment, score: 0 of 2 stages" in shown
    out = harness(watched, "watch", "--store", "s").stdout
    assert out == "no launch is running on s\n"
    assert list((watched / "s/running").iterdir()) == []


def test_mlflow_shows_a_launch(watched: Path, tracking: str) -> None:
    """As one run: under way with its numbers, then finished."""
    launch = run(study(watched, "pass"), store=watched / "s", tracking=tracking)
    (found,) = mlflow_runs(tracking)
    assert (found.info.status, found.data.tags["launch"]) == ("FINISHED", launch.id)
    assert found.data.metrics["progress/trials_finished"] == 1
    assert found.data.metrics["progress/share_of_current_work"] == 1
    assert found.data.metrics["progress/failed_stages"] == 0
    assert found.data.metrics["recall_03"] == round(launch.results[0].mean("recall@3"), 4)


def test_a_launch_that_fails(watched: Path, tracking: str) -> None:
    """Ends as FAILED, or as KILLED if the user stops it, with what it said last."""
    for code, status in (("raise ValueError('no')", "FAILED"), ("raise KeyboardInterrupt", "KILLED")):
        with contextlib.suppress(HarnessError, KeyboardInterrupt):
            run(study(watched, code), store=watched / "s", tracking=tracking)
        newest = mlflow_runs(tracking)[0]
        assert newest.info.status == status
        assert newest.data.tags["mlflow.note.content"].startswith("0 of 1 trial finished")
    assert list(running(watched / "s")) == []


def test_a_tracker_that_fails_meanwhile(watched: Path, tracking: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What only informs does not end a launch, and is not tried again."""
    from harness.tracking.mlflow_live import MlflowLive

    tried = []

    def fail(*_: object) -> None:
        tried.append(1)
        raise HarnessError("MLflow: gone")

    monkeypatch.setattr(MlflowLive, "log_running", fail)
    launch = run(study(watched, "pass"), store=watched / "s", tracking=tracking)
    assert (len(tried), len(launch.results)) == (1, 1)


def test_a_launch_that_was_killed(watched: Path, tracking: str) -> None:
    """Its file and its run are put right by the next one."""
    from mlflow import MlflowClient

    run(study(watched, "pass"), store=watched / "s", tracking=tracking)
    first = mlflow_runs(tracking)[0]
    client, gone = MlflowClient(tracking), _gone()
    client.update_run(first.info.run_id, status="RUNNING")
    client.set_tag(first.info.run_id, "process", f"{platform.node()}:{gone}")
    state = started("killed", "first", 1.0, 3)._replace(process=gone)
    (watched / "s/running/killed.json").write_text(json.dumps(state._asdict()))
    (watched / "s/running/damaged.json").write_text("{")
    assert list(running(watched / "s")) == []
    assert not (watched / "s/running/killed.json").exists()
    run(study(watched, "pass"), store=watched / "s", tracking=tracking)
    assert sorted(one.info.status for one in mlflow_runs(tracking)) == ["FINISHED", "KILLED"]


def test_a_launch_elsewhere_is_believed() -> None:
    """Whether a process of another machine runs is not known here."""
    state = started("far", "x", 1.0, 3)
    assert state.alive
    assert not state._replace(process=_gone()).alive
    assert state._replace(process=_gone(), host="elsewhere").alive


def test_words() -> None:
    """What is being done, how long it will take, what it has cost, what has failed."""
    state = started("one", "x", 100.0, 24)._replace(
        updated=190.0,
        finished=3,
        title="embed",
        done=20.0,
        total=80.0,
        unit="texts",
        left=30.0,
        calls=7,
        usd=0.25,
        lost=1,
    )
    assert state.words.splitlines() == [
        "3 of 24 trials finished, 2 min",
        "embed: 20 of 80 texts, about 30 s left",
        "7 calls of models, $0.2500",
        "1 stage failed",
    ]
    assert state.metrics["share_of_current_work"] == 0.25


def test_a_watcher_hears_of_the_outer_work() -> None:
    """What is inside other work is part of it."""
    heard: list[tuple[Any, ...]] = []
    with watching(lambda *said: heard.append(said)), progress("outer", 2) as advance:
        with progress("inner", 5) as inner:
            inner(5)
        advance(1)
    assert [said[:3] for said in heard] == [("outer", 0.0, 2), ("outer", 1.0, 2), ("", 0.0, 0.0)]


def _gone() -> int:
    """The id of a process that has ended."""
    process = os.fork()
    if process == 0:
        os._exit(0)
    os.waitpid(process, 0)
    return process
