"""Killed at any moment, alone or next to another launch: the next launch continues, and no number changes."""

import csv
import io
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from openai_server import Asked, Server, grade_all
from project import harness, pairs_paid, project, started

from harness.tracking.database import make_database
from harness.tracking.mlflow_store import sqlite_uri

SHORT, LONG = 3, 60
SHOWN = "recall@3,context_precision,ap_at_k"
IN_FLIGHT = 16
"""Max requests in flight when a launch is killed: their answers are lost and paid for again."""


def slow(asked: Asked) -> object:
    time.sleep(0.01)
    return grade_all(asked, lambda question, text: len(text) % 4)


@pytest.fixture(scope="module")
def judge_server() -> Iterator[Server]:
    with Server(slow) as server:
        yield server


@pytest.fixture(scope="module")
def truth(judge_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project, and the output of its commands without a kill."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("plain_data", Path(__file__).parents[1] / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    plain = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plain)
    folder = tmp_path_factory.mktemp("truth")
    documents = plain.garden()
    plain.write_dataset(folder / "data", documents, plain.questions(documents))
    shutil.copytree(folder / "data", folder / "project/datasets/garden")
    project(folder / "project", ", batch: 1")
    shutil.copytree(folder / "project", folder / "done")
    known = environment_of(judge_server)
    harness(folder / "done", "run", "x.yaml", **known)
    harness(folder / "done", "gate", "x.yaml", "--accept", "--why", "it is good", **known)
    return folder


def squad(documents: int) -> str:
    """A data set in SQuAD format."""
    paragraphs = [
        {
            "context": f"Bed {at} grows basil beside the old stone wall.",
            "qas": [{"id": f"q{at}", "question": f"What does bed {at} grow?", "answers": [answer(at)]}],
        }
        for at in range(documents)
    ]
    return json.dumps({"data": [{"title": "Beds", "paragraphs": paragraphs}]})


def answer(at: int) -> dict[str, object]:
    return {"text": "basil", "answer_start": len(f"Bed {at} grows ")}


def environment_of(server: Server) -> dict[str, str]:
    return {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": server.url}


def numbers(folder: Path, server: Server) -> dict[str, list[str]]:
    """The quality numbers of a comparison by trial; seconds and dollars differ between runs."""
    out = harness(folder, "compare", "x.yaml", "--csv", "--show", SHOWN, **environment_of(server)).stdout
    rows = csv.DictReader(io.StringIO(out))
    return {row["name"]: [row[name] for name in SHOWN.split(",")] for row in rows}


def killed(folder: Path, server: Server, moment: float, *command: str) -> None:
    """Starts a command and kills it with its children after `moment` seconds."""
    one = subprocess.Popen(
        ["setsid", *started_command(*command)],
        cwd=folder,
        env={**os.environ, **environment_of(server), "HF_HUB_OFFLINE": "1", "MLFLOW_DISABLE_TELEMETRY": "true"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        one.wait(moment)
    except subprocess.TimeoutExpired:
        os.killpg(one.pid, signal.SIGKILL)
        one.wait()


def started_command(*command: str) -> list[str]:
    from project import HARNESS

    return [str(HARNESS), *command]


def attack(seed: int, truth: Path, server: Server, copy: Path) -> None:
    chance = random.Random(seed)
    command = ["run", "judge", "gate", "import", "first"][seed % 5]
    workers = ["--workers", str(chance.choice((1, 2)))]
    moment = chance.uniform(0.1, 9.0)
    known = environment_of(server)
    how = f"seed {seed}: {command} {workers[1]} after {moment:.2f} s"
    if command == "import":
        shutil.copytree(truth / "project", copy)
        arguments = ["data", "import", "squad", "squad.json", "datasets/made"]
        (copy / "squad.json").write_text(squad(300))
        killed(copy, server, moment / 4, *arguments)
        whole = (copy / "datasets/made").exists()
        done = harness(copy, *arguments, code=None)
        assert done.returncode == (2 if whole else 0), (how, done.stderr)
        harness(copy, "data", "check", "datasets/made")
        return
    shutil.copytree(truth / ("done" if command == "gate" else "project"), copy)
    if command == "gate":
        arguments = ["gate", "x.yaml", "--fresh", "--out", "gate", *workers]
    elif command == "judge":
        arguments = ["run", "x.yaml", "--no-mlflow", *workers]
    else:
        arguments = ["run", "x.yaml", *workers]
    before = len(server.asked)
    other = started(copy, *arguments, **known) if seed % 2 else None
    for _ in range(1 if command != "first" else 2):
        killed(copy, server, moment, *arguments)
        moment /= 2
    if other:
        _, err = other.communicate(timeout=300)
        assert other.returncode == 0, (how, err)
        assert "Traceback" not in err, how
    done = harness(copy, *arguments, code=None, **known)
    assert done.returncode == 0, (how, done.stderr)
    if command != "gate":
        assert numbers(copy, server) == numbers(truth / "done", server), how
        paid = Counter(pairs_paid(server.asked[before:]))
        kills = 2 if command == "first" else 1
        assert sum(count - 1 for count in paid.values()) <= IN_FLIGHT * kills, how
    damaged = list(copy.rglob("*damaged*"))
    assert not damaged, (how, damaged)


@pytest.mark.parametrize("seed", range(SHORT))
def test_a_kill_changes_nothing(seed: int, truth: Path, judge_server: Server, tmp_path: Path) -> None:
    """For run, judge and gate, one of them next to another launch."""
    attack(seed, truth, judge_server, tmp_path / "copy")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SHORT, LONG + SHORT))
def test_many_kills_change_nothing(seed: int, truth: Path, judge_server: Server, tmp_path: Path) -> None:
    """Sixty moments of run, judge, gate, import and first creation, with one and two workers, half in parallel."""
    attack(seed, truth, judge_server, tmp_path / "copy")


def test_a_partial_mlflow_database_is_repaired(tmp_path: Path) -> None:
    """Empty, with some of the tables, or under its temporary name: set aside and created again."""
    file = tmp_path / "mlflow.db"
    for left in ("empty", "tables", "draft"):
        if left == "empty":
            file.touch()
        elif left == "tables":
            with sqlite3.connect(file) as db:
                db.execute("CREATE TABLE experiments (experiment_id INTEGER)")
                db.execute("CREATE TABLE runs (run_uuid TEXT)")
        else:
            (tmp_path / "mlflow.db.new-1").write_text("half")
        make_database(file, sqlite_uri)
        with sqlite3.connect(file) as db:
            assert db.execute("SELECT COUNT(*) FROM experiments").fetchone() == (1,)
        assert not list(tmp_path.glob("*.new-*"))
        file.unlink()
    assert len(list(tmp_path.glob("mlflow.db.unfinished-?"))) == 2


def test_a_database_with_runs_is_never_set_aside(tmp_path: Path) -> None:
    """Even if it is damaged: it contains a user's results."""
    file = tmp_path / "mlflow.db"
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE runs (run_uuid TEXT)")
        db.execute("INSERT INTO runs VALUES ('a')")
    make_database(file, sqlite_uri)
    with sqlite3.connect(file) as db:
        assert db.execute("SELECT run_uuid FROM runs").fetchone() == ("a",)
