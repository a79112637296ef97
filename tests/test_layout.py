"""The traps of folder names: `datasets` must never be importable, our packages must be ours."""

import importlib.util
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_data_folders_hold_no_python() -> None:
    """A .py under datasets/ or an __init__.py under experiments/ would make a package of it."""
    assert not list((ROOT / "datasets").rglob("*.py"))
    assert not list((ROOT / "experiments").rglob("__init__.py"))
    assert not (ROOT / "conftest.py").exists()
    assert not (ROOT / "tests" / "__init__.py").exists()


def test_datasets_is_not_importable() -> None:
    """transformers takes any importable `datasets` for Hugging Face's and breaks."""
    found = importlib.util.find_spec("datasets")
    assert found is None or found.origin is not None


def test_packages_are_this_repository() -> None:
    """PyPI has packages called judges and reports; ours must be the ones in use."""
    for name in ("harness", "judges", "reports"):
        found = importlib.util.find_spec(name)
        assert found is not None
        assert Path(str(found.origin)).parents[1] == ROOT


def test_start_up_imports_nothing_heavy() -> None:
    """`harness --help` must cost neither torch nor mlflow, and building an experiment must not either."""
    program = (
        "import sys, harness.cli, harness.experiment.yaml_file, harness.running.launch\n"
        "heavy = {'torch', 'mlflow', 'faiss', 'sentence_transformers', 'pandas', 'nltk', 'openai', 'matplotlib'}\n"
        "heavy |= {'genai_prices', 'httpx2'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
