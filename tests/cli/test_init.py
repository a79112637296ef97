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


def test_a_project_with_documents(tmp_path: Path) -> None:
    """Documents, an experiment of six trials about them, the schema; what is next is said; then it runs."""
    (tmp_path / "docs").mkdir()
    for number in range(3):
        text = f"# Part {number}\n\nThe kiln {number} fires at {number} o'clock.\n\n## More\n\nGlaze {number} melts.\n"
        (tmp_path / f"docs/part{number}.md").write_text(text)
    (tmp_path / "docs/note.tmp").write_text("x")
    out = harness(tmp_path, "init", "kilns", "--docs", "docs")
    assert "3 documents" in out
    assert "1 file of other kinds left out: .tmp" in out
    assert "next: cd kilns && harness data evidence kilns --to validation" in out
    folder = tmp_path / "kilns"
    assert "harness data evidence datasets/kilns --to validation" in harness(folder, "data", "check", "kilns")
    assert "no query set yet; `harness data evidence" in harness(folder, "run", "experiment.yaml", code=2)
    for number in range(3):
        given = ("--query", f"When does kiln {number} fire?", "--quote", f"fires at {number} o'clock")
        harness(folder, "data", "evidence", "kilns", "--to", "validation", *given)
    assert "6 trials in" in harness(folder, "run", "experiment.yaml", "--no-mlflow")


def test_documents_that_cannot_be_read_leave_no_project(tmp_path: Path) -> None:
    """All or nothing."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.pdf").write_bytes(b"no pdf")
    assert "a.pdf: is not a readable PDF" in harness(tmp_path, "init", "new", "--docs", "docs", code=2)
    assert "nowhere: no such file or folder" in harness(tmp_path, "init", "new", "--docs", "nowhere", code=2)
    assert not (tmp_path / "new").exists()


def test_the_sample(tmp_path: Path) -> None:
    """The shipped data and experiments, all valid."""
    out = harness(tmp_path, "init", "sample", "--sample")
    assert "next: cd sample && harness run experiments/quickstart.yaml" in out
    folder = tmp_path / "sample"
    assert "0 errors" in harness(folder, "data", "check", "cookbook")
    shipped = Path(__file__).parents[2] / "experiments"
    assert {path.name for path in (folder / "experiments").iterdir() if path.is_file()} == {
        path.name for path in shipped.iterdir() if path.is_file()
    }
    harness(folder, "plan", "experiments/quickstart.yaml", "--filter", "retriever=bm25")
