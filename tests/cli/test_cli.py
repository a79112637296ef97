"""The command line: output, exit codes, and one line for errors that a user can fix."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HARNESS = str(Path(sys.executable).parent / "harness")


def harness(*arguments: str, cwd: Path, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [HARNESS, *arguments], cwd=cwd, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def test_help_is_quick(tmp_path: Path) -> None:
    """Under half a second of CPU time; nothing heavy is imported."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = harness("--help", cwd=tmp_path).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert all(command in out for command in ("plan", "run", "compare", "data", "list", "ui"))
    assert (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime) < 0.5


@pytest.mark.parametrize(
    "role", ["chunkers", "augmenters", "embedders", "retrievers", "selectors", "judges", "metrics"]
)
def test_list(tmp_path: Path, role: str) -> None:
    """For every role: names, first lines of docstrings, settings with their defaults."""
    out = harness("list", role, cwd=tmp_path).stdout
    assert out.strip()
    if role == "chunkers":
        assert "fixed: Windows of `size` tokens or characters" in out
        assert "    size = 256" in out
    if role == "embedders":
        assert 'device = "cpu"  (speed or cost only)' in out


def test_usage_errors_have_code_2(tmp_path: Path) -> None:
    """No command, an unknown one, a missing file, a folder, no data set, a bad number of workers."""
    harness(cwd=tmp_path, code=2)
    harness("rnu", cwd=tmp_path, code=2)
    assert harness("run", "x.yaml", cwd=tmp_path, code=2).stderr == "harness: x.yaml: no such file\n"
    assert "is a folder" in harness("run", ".", cwd=tmp_path, code=2).stderr
    (tmp_path / "x.yaml").write_text("name: n\ndata: nowhere\nchunker: fixed\nretriever: bm25\n")
    assert "no data set 'nowhere'" in harness("plan", "x.yaml", cwd=tmp_path, code=2).stderr
    assert "workers: expected at least 1" in harness("run", "x.yaml", "--workers", "0", cwd=tmp_path, code=2).stderr


def test_data_check_codes(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """0 with warnings only, 1 with an error, 2 if there is nothing to check."""
    root = make_data([{"id": "a", "text": "Some text."}], [{"id": "q", "text": "?"}])
    assert "0 errors, 2 warnings" in harness("data", "check", "tiny", cwd=tmp_path).stdout
    file = root / "queries/validation.jsonl"
    file.write_text(json.dumps({"id": "q", "text": "?", "evidence": [{"doc": "b"}]}) + "\n")
    assert "[not-pinned]" in harness("data", "check", "tiny", cwd=tmp_path, code=1).stdout
    harness("data", "pin", "tiny", cwd=tmp_path)
    lines = harness("data", "check", "tiny", "--json", cwd=tmp_path, code=1).stdout.splitlines()
    assert [json.loads(line)["code"] for line in lines] == [
        *("short-documents", "unknown-document", "few-queries", "few-clusters")
    ]
    assert "no data set 'nothing'" in harness("data", "check", "nothing", cwd=tmp_path, code=2).stderr


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    """`harness list … | head -1`."""
    done = subprocess.run(
        f"{HARNESS} list metrics | head -1", shell=True, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""


def test_ui_without_a_store(tmp_path: Path) -> None:
    """The message says what to do first."""
    assert "run an experiment first" in harness("ui", cwd=tmp_path, code=2, MLFLOW_TRACKING_URI="").stderr


def test_a_command_that_was_renamed_says_so(tmp_path: Path) -> None:
    """In one line, with the exit code of wrong usage."""
    assert harness("bands", "x.yaml", cwd=tmp_path, code=2).stderr == "harness: `bands` is now called `bins`\n"


def test_a_chart_is_svg(tmp_path: Path) -> None:
    """A file with another ending would hold SVG under the name of another format."""
    refused = harness("bins", "x.yaml", "--plot", "bins.png", cwd=tmp_path, code=2)
    assert refused.stderr.endswith("--plot bins.png: the chart is SVG; name a file that ends in .svg\n")
