"""The folder of a project: where results are, whatever the working folder is."""

from pathlib import Path

import pytest

from harness.core.project import project_folder


def folders(root: Path, *names: str) -> list[Path]:
    for name in names:
        (root / name).mkdir(parents=True, exist_ok=True)
    return [root / name for name in names]


def test_the_first_folder_upward_that_looks_like_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `datasets`, `.git` or `pyproject.toml`; from anywhere."""
    _, inner, elsewhere = folders(tmp_path, "project/datasets", "project/experiments/deep", "elsewhere")
    for working in (elsewhere, inner, tmp_path):
        monkeypatch.chdir(working)
        assert project_folder(inner) == tmp_path / "project"


def test_results_that_are_there_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest ones win; those of earlier versions are in the working folder, which may be above the project."""
    _, inner, elsewhere = folders(tmp_path, "work/project/datasets", "work/project/experiments", "elsewhere")
    folders(tmp_path, "work/.harness", "elsewhere/.harness")
    monkeypatch.chdir(elsewhere)
    assert project_folder(inner) == tmp_path / "work/project"
    monkeypatch.chdir(tmp_path / "work")
    assert project_folder(inner) == tmp_path / "work"
    folders(tmp_path, "work/project/experiments/.harness")
    assert project_folder(inner) == inner


def test_without_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working folder if the experiment is inside it, else the experiment's own."""
    inner, elsewhere = folders(tmp_path, "a/b", "elsewhere")
    monkeypatch.chdir(tmp_path)
    assert project_folder(inner) == tmp_path
    monkeypatch.chdir(elsewhere)
    assert project_folder(inner) == inner
