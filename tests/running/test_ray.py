"""A real Ray cluster with a bucket as the store: the same numbers, also if workers die. Skipped without Ray."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from bucket_server import new_bucket, served, use
from cluster_project import EXPERIMENT, OWN, PACKED, computed, numbers
from project import harness

pytest.importorskip("ray", reason="Ray is in an extra of its own: pip install 'retrieval-harness[ray]'")


@pytest.fixture
def folder(garden_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project, with a bucket as its store."""
    with served() as address:
        use(monkeypatch, address, tmp_path / "cache")
        monkeypatch.setenv("HARNESS_STORE", new_bucket(address))
        (tmp_path / "x.yaml").write_text(EXPERIMENT)
        yield tmp_path


def test_the_same_numbers(folder: Path) -> None:
    """Although the worker that cuts the first document with own code is killed."""
    killed = folder / "killed"
    die = f"\n        mark = Path({str(killed)!r})\n        if not mark.exists():\n            mark.touch()\n"
    (folder / "own.py").write_text(OWN % f"{die}            os.kill(os.getpid(), signal.SIGKILL)")
    far = harness(folder, "run", "x.yaml", "--no-mlflow", "--on", "ray://local", "--workers", "2").stdout
    assert killed.exists()
    near = harness(folder, "run", "x.yaml", "--no-mlflow", "--store", "near").stdout
    assert computed(far) | PACKED == computed(near)
    assert numbers(folder) == numbers(folder, "--store", "near")


def test_a_task_that_kills_every_worker(folder: Path) -> None:
    """One line; what is finished is stored."""
    (folder / "own.py").write_text(OWN % "os.kill(os.getpid(), signal.SIGKILL)")
    done = harness(folder, "run", "x.yaml", "--no-mlflow", "--on", "ray://local", "--workers", "2", code=2)
    assert "ray://local: several workers died one after another at the same task (killed, or out of" in done.stderr
    (folder / "own.py").write_text(OWN % "raise KeyError('weight')")
    done = harness(folder, "run", "x.yaml", "--no-mlflow", "--on", "ray://local", code=2, traceback=True)
    assert "chunker lines: document 'bed0': KeyError: 'weight' (own.py:10); 3 of 9 trials" in done.stderr


def test_a_cluster_that_cannot_be_reached(folder: Path) -> None:
    """One line."""
    (folder / "own.py").write_text(OWN % "pass")
    done = harness(folder, "run", "x.yaml", "--no-mlflow", "--on", "ray://auto", code=2)
    assert "--on ray://auto: no Ray cluster answers (ConnectionError: " in done.stderr
