"""The public API: one list, documented name by name."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("harness", "harness.components")


def documented(package: str) -> set[str]:
    """The names in the tables of a package's section of docs/api.md."""
    page = (ROOT / "docs" / "api.md").read_text()
    section = page.split(f"## `{package}`\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \| .+ \|$", section, re.MULTILINE))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_exists(package: str) -> None:
    """`__all__` is true, and `dir()` shows it."""
    module = importlib.import_module(package)
    assert len(module.__all__) > 30
    assert dir(module) == module.__all__
    for name in module.__all__:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_exported_is_documented_and_the_other_way_round(package: str) -> None:
    """Each public name has its row in docs/api.md, and no row is about anything else."""
    assert documented(package) == set(importlib.import_module(package).__all__)


def test_names_that_moved_say_where() -> None:
    """In the ImportError of whoever still imports them from the old place."""
    with pytest.raises(ImportError, match="write `from harness.components import Fusion`"):
        exec("from harness import Fusion")
    with pytest.raises(ImportError, match="write `from harness.components import FusionContext`"):
        exec("from harness import Searched")
    with pytest.raises(ImportError, match="cannot import name 'Nothing'"):
        exec("from harness import Nothing")


def test_names_stay_what_they_are_once_the_rooms_are_imported() -> None:
    """No package takes the place of a function: `harness.run` is one, whatever is imported first."""
    program = "import harness.running.launch, reports, harness; print(harness.run.__name__, harness.compare.__name__)"
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["run", "compare"]


def test_packages_are_marked_as_typed() -> None:
    """So that type checkers read the annotations of an installed harness."""
    for package in ("harness", "judges", "reports"):
        assert (ROOT / package / "py.typed").is_file()
