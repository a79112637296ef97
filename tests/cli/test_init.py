"""`harness init`: the project it creates runs at once."""

import os
import subprocess
import sys
from pathlib import Path

from harness.data.checks import check_dataset

HARNESS = str(Path(sys.executable).parent / "harness")


def harness(cwd: Path, *arguments: str, code: int = 0) -> str:
    environment = {**os.environ, "HARNESS_STORE": str(cwd / "store")}
    done = subprocess.run([HARNESS, *arguments], capture_output=True, text=True, check=False, cwd=cwd, env=environment)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_init_and_run(tmp_path: Path) -> None:
    """Six trials without any download; no error in the data; a custom component."""
    output = harness(tmp_path, "init", "first")
    assert "next: cd first && harness run experiment.yaml" in output
    folder = tmp_path / "first"
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()) == [
        "datasets/workshop/corpus.jsonl",
        "datasets/workshop/manifest.yaml",
        "datasets/workshop/queries/test.jsonl",
        "datasets/workshop/queries/validation.jsonl",
        "experiment.schema.json",
        "experiment.yaml",
        "my_chunkers.py",
    ]
    out = harness(folder, "run", "experiment.yaml", "--no-mlflow")
    assert "6 trials in" in out
    assert "by_heading · dense" in out
    found = {finding.code for finding in check_dataset(folder / "datasets/workshop")}
    assert found == {"no-evidence", "few-queries", "few-clusters"}
    assert "evidence-cut" not in harness(folder, "data", "check", "experiment.yaml")


def test_a_folder_with_files_is_left_alone(tmp_path: Path) -> None:
    """Nothing is added, changed or removed."""
    (tmp_path / "notes").write_text("mine")
    assert "already contains files" in harness(tmp_path, "init", ".", code=2)
    assert "already contains files" in harness(tmp_path, "init", "notes", code=2)
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]
