"""A small project in a folder, driven through the real command line in processes of its own."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from openai_server import Asked

EXPERIMENT = """\
name: attacked
question: Does it hold?
data: garden
tokenizer: words
chunker: {fixed: {size: 20}}
retriever: {bm25: {depth: 5}}
selector: [{top_k: {k: 3}}]
metrics: [recall@3]
%s
grid:
  chunker:
    - fixed: {size: 20}
    - fixed: {size: 40}
"""
FIRST = """\
name: first
data: garden
tokenizer: words
chunker: {fixed: {size: 20}}
embedder: hashing
retriever: {bm25: {depth: 5}}
selector: {top_k: {k: 3}}
metrics: [recall@3]
"""
"""One trial; other tests change a line of it, or add a grid."""
JUDGES = "judges: [{context_precision: {model: m, k: 3%s}}]"
HARNESS = Path(sys.executable).with_name("harness")


def project(folder: Path, judges: str | None = "", *, name: str = "x.yaml", **replaced: str) -> Path:
    """An experiment file in a folder that holds the garden's data; `judges` are settings of its judge."""
    text = EXPERIMENT % ("" if judges is None else JUDGES % judges)
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def environment(**changes: str) -> dict[str, str]:
    """The environment of a command: nothing of this machine's keys and servers, and no network but 127.0.0.1."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if os.environ.get("AWS_ACCESS_KEY_ID") == "testing" and name.startswith("AWS_")
    }
    kept |= {name: value for name, value in os.environ.items() if "KEY" not in name and not name.startswith("OPENAI")}
    quiet = {"HF_HUB_OFFLINE": "1", "MLFLOW_DISABLE_TELEMETRY": "true", "COLUMNS": "200"}
    return {**kept, **quiet, **changes}


def started(folder: Path, *arguments: str, **changes: str) -> "subprocess.Popen[str]":
    """A command that is under way."""
    return subprocess.Popen(
        [str(HARNESS), *arguments],
        cwd=folder,
        env=environment(**changes),
        text=True,
        errors="replace",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )


def harness(
    folder: Path, *arguments: str, code: int | None = 0, traceback: bool = False, **changes: str
) -> "subprocess.CompletedProcess[str]":
    """A finished command; no traceback, unless it was to crash, or a custom component to raise an error."""
    done = subprocess.run(
        [str(HARNESS), *arguments],
        cwd=folder,
        env=environment(**changes),
        text=True,
        errors="replace",
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=300,
    )
    if code is not None:
        assert done.returncode == code, done.stderr[-3000:]
    if code != 70 and not traceback:
        assert "Traceback" not in done.stderr, done.stderr[-3000:]
    return done


def one_line(done: "subprocess.CompletedProcess[str]", *parts: str) -> None:
    """The command said one line on stderr that holds all of some words."""
    assert done.returncode == 2, (done.returncode, done.stderr[-2000:])
    assert done.stderr.count("\n") == 1, done.stderr[-2000:]
    for part in parts:
        assert part in done.stderr, f"{part!r} not in {done.stderr!r}"


def pairs_paid(asked: Sequence[Asked]) -> list[tuple[str, str]]:
    """Every question and passage that a server was asked to grade, as often as it was."""
    return [(one.question, text) for one in asked if not one.is_probe for text in one.fenced.values()]
