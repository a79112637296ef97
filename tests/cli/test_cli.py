"""The command line: output, exit codes, and one line for errors that a user can fix."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import jsonschema
import pytest

from harness.core.strict_yaml import load_yaml

ROOT = Path(__file__).parents[2]
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
    """An unknown command, a missing file, a folder, no data set, a bad number of workers."""
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


def test_no_command_shows_the_help(tmp_path: Path) -> None:
    """On stdout; a script that passes nothing does not look successful."""
    for given in ((), ("data",), ("judge",)):
        done = harness(*given, cwd=tmp_path, code=2)
        assert done.stdout.startswith("usage: harness")
        assert not done.stderr


def test_version(tmp_path: Path) -> None:
    """That of the installed package."""
    assert harness("--version", cwd=tmp_path).stdout == f"harness {version('retrieval-harness')}\n"


def test_list_describes_one(tmp_path: Path) -> None:
    """A component with its whole docstring, a metric with or without a cutoff, a preset; without a name, all names."""
    bm25 = harness("list", "bm25", cwd=tmp_path).stdout
    assert bm25.startswith("bm25 (retriever): ")
    assert "Robertson & Zaragoza" in bm25
    assert "    depth = 50" in bm25
    assert harness("list", "recall@5", cwd=tmp_path).stdout.startswith("recall (metric): ")
    assert harness("list", "balanced", cwd=tmp_path).stdout.startswith("balanced: A preset")
    assert harness("list", "chunker", cwd=tmp_path).stdout == harness("list", "chunkers", cwd=tmp_path).stdout
    assert "retrievers  dense bm25 hybrid" in harness("list", cwd=tmp_path).stdout


def test_the_schema_accepts_every_shipped_experiment(tmp_path: Path) -> None:
    """It is shipped with them, and finds what the harness finds."""
    text = harness("schema", cwd=tmp_path).stdout
    assert text == (ROOT / "experiments/experiment.schema.json").read_text()
    checker = jsonschema.Draft202012Validator(json.loads(text))
    for path in (*ROOT.glob("experiments/**/*.yaml"), *ROOT.glob("harness/cli/scaffold/[dw]*/*.yaml")):
        assert path.read_text().startswith("# yaml-language-server: $schema="), path
        assert not list(checker.iter_errors(load_yaml(path.read_text()))), path
    base = {"name": "n", "data": "d", "chunker": "fixed", "retriever": "bm25"}
    assert checker.is_valid({**base, "chunker": "own.py:Own", "metrics": ["recall@5", "own.py:Nugget@5"]})
    for wrong in (
        {"chunker": "fixd"},
        {"chunker": {"fixed": {"sise": 3}}},
        {"metrics": ["recal@5"]},
        {"grid": {"x": [1]}},
    ):
        assert not checker.is_valid({**base, **wrong}), wrong
    out = harness("schema", "--out", "s.json", cwd=tmp_path).stdout
    assert "# yaml-language-server: $schema=s.json" in out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(tmp_path: Path, shell: str) -> None:
    """A script with every command and option; bash accepts it."""
    script = harness("completion", shell, cwd=tmp_path).stdout
    assert "evidence" in script
    assert "clusters" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_results_are_found_from_any_folder(garden_data: Path, tmp_path: Path) -> None:
    """They are in the project of the experiment: the first folder with `datasets` above it."""
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/x.yaml").write_text(
        "name: here\ndata: garden\ntokenizer: words\nchunker: {fixed: {size: 20}}\nretriever: {bm25: {depth: 5}}\n"
    )
    (tmp_path / "elsewhere").mkdir()
    harness("run", "../experiments/x.yaml", cwd=tmp_path / "elsewhere", MLFLOW_TRACKING_URI="")
    assert {".harness", "mlartifacts", "mlflow.db"} <= {path.name for path in tmp_path.iterdir()}
    assert not list((tmp_path / "elsewhere").iterdir())
    for folder in (tmp_path, tmp_path / "experiments", Path("/")):
        out = harness("compare", str(tmp_path / "experiments/x.yaml"), cwd=folder, HARNESS_STORE="").stdout
        assert "fixed · bm25" in out
    assert "fixed · bm25" in harness("compare", "here", cwd=tmp_path / "elsewhere").stdout
