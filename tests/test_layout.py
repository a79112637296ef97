"""Name clashes: `datasets` must not be importable, and the packages in use must be those of this repository."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_data_folders_hold_no_python() -> None:
    """A .py under datasets/ or an __init__.py under experiments/ would turn the folder into a package."""
    assert not list((ROOT / "datasets").rglob("*.py"))
    assert not list((ROOT / "experiments").rglob("__init__.py"))
    assert not (ROOT / "conftest.py").exists()
    assert not (ROOT / "tests" / "__init__.py").exists()


def test_datasets_is_not_importable() -> None:
    """transformers mistakes any importable `datasets` for that of Hugging Face and breaks."""
    found = importlib.util.find_spec("datasets")
    assert found is None or found.origin is not None


def test_packages_are_this_repository() -> None:
    """PyPI has packages called judges and reports; those of this repository must be in use."""
    for name in ("harness", "judges", "reports"):
        found = importlib.util.find_spec(name)
        assert found is not None
        assert Path(str(found.origin)).parents[1] == ROOT


def test_start_up_imports_nothing_heavy() -> None:
    """Neither `harness --help` nor building an experiment imports torch or mlflow."""
    program = (
        "import sys, harness.cli, harness.experiment.yaml_file, harness.running.launch\n"
        "heavy = {'torch', 'mlflow', 'faiss', 'sentence_transformers', 'pandas', 'nltk', 'openai', 'matplotlib'}\n"
        "heavy |= {'genai_prices', 'httpx2'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["judges", "reports"])
def test_a_package_of_the_same_name_is_reported_in_one_line(name: str, tmp_path: Path) -> None:
    """A folder of the user's project that hides ours: where it is and what to do, from Python and the command line."""
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    (tmp_path / "script.py").write_text("from harness import Experiment, compare\n")
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    line = done.stderr.splitlines()[-1]
    assert f"{tmp_path / name}: this package '{name}' hides the one of the harness" in line
    assert "rename its folder" in line
    program = "import sys; from harness.cli.main import main; sys.exit(main(['list', 'chunkers']))"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"'{name}' hides" in done.stderr
