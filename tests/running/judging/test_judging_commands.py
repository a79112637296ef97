"""Judging through the command line: exit codes, one line for errors, kills and interrupts."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from judged_experiments import behave
from openai_server import Asked, Raw, Server, completion

HARNESS = Path(sys.executable).parent / "harness"


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
    assert "not asked, as the run was stopped" in out
    sent = len(server.calls)
    assert sent < 48
    server.behave = behave
    assert harness(project, "run", "x.yaml", "--no-mlflow").returncode == 0
    assert len(server.calls) == 48
