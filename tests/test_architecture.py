"""The plan of the code: ten rooms, small modules, small functions, and a picture that is up to date."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import TypeGuard

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("harness", "judges", "reports")
ROOMS = {
    *("cli", "components", "core", "data", "evaluation", "experiment", "llm", "running", "storage", "tracking"),
}


def modules() -> Iterator[Path]:
    for package in PACKAGES:
        yield from (ROOT / package).rglob("*.py")


def test_the_rooms_of_the_engine() -> None:
    """Nothing lies flat in harness/ but the public API; the contract names each room and only these."""
    found = {path.name for path in (ROOT / "harness").iterdir() if path.name != "__pycache__"}
    assert found == ROOMS | {"__init__.py", "py.typed"}
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    named = {name.strip() for layer in layers for name in layer.split("|")}
    assert named == {f"harness.{room}" for room in ROOMS} | {"judges", "reports"}
    assert len(layers) <= 10
    assert not any("ignore_imports" in contract for contract in contracts)


def test_modules_functions_and_classes_are_small() -> None:
    """At most 350 lines a module; 60 lines and 6 parameters a function; 15 methods a class."""
    for path in modules():
        text = path.read_text()
        assert text.count("\n") <= 350, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                assert node.end_lineno - node.lineno < 60, f"{path}: {node.name}"
                given = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                assert len(set(given) - {"self", "cls"}) <= 6, f"{path}: {node.name}"
            if isinstance(node, ast.ClassDef):
                methods = [one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
                assert len(methods) <= 15, f"{path}: {node.name} has {len(methods)} methods"


def test_reading_the_launch_from_top_to_bottom() -> None:
    """`run` shows in 40 lines what a launch is."""
    tree = ast.parse((ROOT / "harness/running/launch.py").read_text())
    (run,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "run")
    assert run.end_lineno is not None
    assert run.end_lineno - run.lineno < 40


def test_one_type_per_thing() -> None:
    """A place in a document is a Span; with its text a Chunk; as it is measured a Passage. Corpus has all as arrays.

    `Returned` is what another system says of a place, which may be wrong; `Http` has the paths of what it says.
    """
    found = set()
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                held = {
                    part.target.id for part in node.body if isinstance(part, ast.AnnAssign) and is_name(part.target)
                }
                if {"doc", "start", "end"} <= held:
                    found.add(node.name)
    assert found == {"Span", "Chunk", "Passage", "Corpus", "Returned", "Http"}


def is_name(node: ast.expr) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name)


def walks() -> dict[str, list[tuple[str, str]]]:
    """The two walks of docs/architecture.md: files and functions in their order."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    found = {}
    for section in text.split("\n## The way of one ")[1:]:
        rows = re.findall(r"^\| \d+ \| `([^`]+)` \| `([^`]+)` \|", section.partition("\n## ")[0], re.MULTILINE)
        found[section.partition("\n")[0]] = rows
    return found


def room(path: str) -> str:
    parts = path.split("/")
    return parts[1] if parts[0] == "harness" else parts[0]


def test_the_walks_cross_few_rooms() -> None:
    """A trial from YAML to the tracker at most 11 times, a query at most 8 times; the texts say how often."""
    counts = {
        name: sum(room(one) != room(other) for (one, _), (other, _) in pairwise(rows)) for name, rows in walks().items()
    }
    assert counts == {"trial": 10, "query": 7}


def test_the_walks_are_taken(garden_data: Path, tmp_path: Path, tracking: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every function of the two walks exists, and is called by one `harness run`."""
    from harness.cli.main import main

    (tmp_path / "x.yaml").write_text(
        "name: x\ndata: garden\nchunker: {fixed: {size: 30}}\nretriever: bm25\nselector: [{top_k: {k: 3}}]\n"
        "metrics: [recall@3, recall@100t]\ngrid: {selector.top_k.k: [3, 2]}\n"
    )
    monkeypatch.chdir(tmp_path)
    called: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(ROOT)):
            called.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        assert main(["run", "x.yaml", "--tracking", tracking, "--store", "store"]) == 0
    finally:
        sys.setprofile(None)
    for rows in walks().values():
        assert {(str(ROOT / path), function) for path, function in rows} <= called


def test_only_tracking_knows_mlflow() -> None:
    """Neither launches nor reports name it; a second tracker needs no change there."""
    for room in (ROOT / "harness" / "running", ROOT / "reports"):
        for path in room.rglob("*.py"):
            assert "mlflow" not in path.read_text().lower(), path


def test_running_asks_no_component_for_its_class() -> None:
    """A role says what it needs: `running` has no `isinstance` of a role, and no default for what a part may lack."""
    from harness.components import llm_roles, roles
    from harness.components.component import Component

    known = [value for module in (roles, llm_roles) for value in vars(module).values() if isinstance(value, type)]
    names = {value.__name__ for value in known if issubclass(value, Component)} - {"Component"}
    found = []
    for path in (ROOT / "harness" / "running").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                asked = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                if node.func.id in ("isinstance", "issubclass", "hasattr") and asked & names:
                    found.append(f"{path.name}:{node.lineno}")
                if node.func.id == "getattr" and len(node.args) == 3:
                    found.append(f"{path.name}:{node.lineno}")
    assert found == []


def test_every_public_function_says_what_it_does() -> None:
    """Classes, functions and methods without an underscore have a docstring; overrides have that of their base."""
    engine = ROOT / "harness"
    bases = [engine / base for base in ("components/component.py", "components/llm_roles.py", "llm/prompter.py")]
    bases += (engine / "components" / "roles").glob("*.py")
    declared = (ast.walk(ast.parse(base.read_text())) for base in bases)
    inherited = {node.name for nodes in declared for node in nodes if isinstance(node, ast.FunctionDef)}
    missing = []
    for path in modules():
        if "scaffold" in path.parts:
            continue
        for owner in [tree := ast.parse(path.read_text()), *(n for n in tree.body if isinstance(n, ast.ClassDef))]:
            for node in owner.body:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    private = node.name.startswith("_") or (isinstance(owner, ast.ClassDef) and owner.name[0] == "_")
                    if not private and ast.get_docstring(node) is None and node.name not in inherited:
                        missing.append(f"{path.relative_to(ROOT)}: {node.name}")
    assert missing == []


def test_the_picture_is_what_the_import_graph_shows() -> None:
    """docs/rooms.svg; `make architecture` draws it again."""
    done = subprocess.run(
        [sys.executable, "-P", ROOT / "docs" / "draw_rooms.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
