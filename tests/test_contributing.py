"""The examples of CONTRIBUTING.md, applied to a copy of the code and run: adding a part touches the files it says."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
LIMITS = {
    "A rank metric, and one of an oracle": 1,
    "A chunker with a setting": 3,  # its file, __init__.py, the golden file
    "A judge": 2,
    "A column of the comparison": 1,
    "An efficiency figure": 2,
    "An option of `harness run`": 2,
    "An importer": 2,
    "A tracker": 2,
}
"""The most files that each example may touch."""


class Edit(NamedTuple):
    """A block of an example: a new file, or lines at the end, after a line, or instead of a line."""

    path: str
    how: str
    anchor: str
    code: str

    def apply(self, root: Path) -> None:
        path = root / self.path
        if self.how == "a new file":
            assert not path.exists(), self.path
            path.write_text(self.code)
            return
        text = path.read_text()
        if self.how == "at the end":
            path.write_text(f"{text}\n\n{self.code}")
            return
        line = rf"^{re.escape(self.anchor)}{'$' if self.how == 'after' else ''}"
        places = list(re.finditer(line, text, re.MULTILINE))
        assert len(places) == 1, f"{self.path} has {len(places)} lines {self.anchor!r}"
        at = places[0]
        kept = f"{self.anchor}\n" if self.how == "after" else ""
        end = at.end() + (self.how == "after")
        code = self.code if self.how == "after" else self.code.rstrip("\n")
        path.write_text(text[: at.start()] + kept + code + text[end:])


def examples() -> dict[str, list[Edit]]:
    found = {}
    for section in TEXT.partition("## Examples")[2].split("### ")[1:]:
        title, _, body = section.partition("\n")
        blocks = re.findall(
            r"^`([^`]+)`, (a new file|at the end|after|instead of)(?: `(.+?)`)?:\n\n```\w+\n(.*?)^```$",
            body,
            re.M | re.S,
        )
        assert len(blocks) == body.count("```") // 2, title
        found[title] = [Edit(*block) for block in blocks]
    return found


@pytest.mark.parametrize("title", LIMITS)
def test_an_example_touches_few_files(title: str) -> None:
    """As many as the table promises."""
    edits = examples()
    assert set(edits) == set(LIMITS)
    assert len({edit.path for edit in edits[title]}) <= LIMITS[title]


EXPERIMENT = """
name: added
data: {data}
chunker: {lines: {count: 3}}
retriever: bm25
selector: [{top_k: {k: 4}}]
metrics: [last_rr@3, recall@3, recall_omega, recall@100t]
judges: [answer_found]
grid: {chunker: [{lines: {count: 3}}, fixed]}
compare: {show: [dropped]}
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code with all examples applied."""
    root = tmp_path_factory.mktemp("copy")
    for name in ("harness", "judges", "reports", "tests"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    for edits in examples().values():
        for edit in edits:
            edit.apply(root)
    return root


def called(root: Path, folder: Path, *command: str, code: int = 0) -> str:
    environment = {**os.environ, "PYTHONPATH": str(root), "HARNESS_STORE": str(folder / "store")}
    done = subprocess.run(
        [sys.executable, "-P", *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout + done.stderr


def harness(root: Path, folder: Path, *arguments: str, code: int = 0) -> str:
    return called(
        root, folder, "-c", "from harness.cli.main import main; raise SystemExit(main())", *arguments, code=code
    )


def test_the_examples_work(copy: Path, tmp_path: Path) -> None:
    """One experiment uses all of them; its numbers are plausible, and each part shows where it should."""
    (tmp_path / "x.yaml").write_text(EXPERIMENT.replace("{data}", str(ROOT / "datasets" / "cookbook")))
    shown = harness(copy, tmp_path, "run", "x.yaml", "--tracking", "csv:means.csv")
    assert "In CSV:" in shown
    assert "dropped" in shown
    rows = list(csv.reader((tmp_path / "means.csv").open(encoding="utf-8")))
    means = {(trial, metric): float(mean) for _, trial, metric, mean in rows}
    for trial in {trial for _, trial, _, _ in rows}:
        assert 0 < means[trial, "last_rr@3"] <= means[trial, "recall@3"] <= 1
        assert means[trial, "recall_omega"] == 1  # neither chunker leaves gaps
        assert 0 <= means[trial, "answer_found"] <= 1
    lines = harness(copy, tmp_path, "compare", "x.yaml", "--csv").splitlines()
    assert {"passages", "dropped"} <= set(lines[0].split(","))
    assert "the grid has 2 trials" in harness(copy, tmp_path, "run", "x.yaml", "--max-trials", "1", code=2)
    assert "last_rr" in harness(copy, tmp_path, "list", "metrics")
    entries = [{"question": f"How do I {verb} it?", "answer": f"{verb} it by hand."} for verb in ("open", "close")]
    (tmp_path / "faq.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert "documents" in harness(copy, tmp_path, "data", "import", "faq", "faq.jsonl", "datasets/faq")


def test_the_contract_tests_take_a_new_component(copy: Path, tmp_path: Path) -> None:
    """The new chunker passes them, golden file included, without a further change."""
    wanted = "lines or identities or descriptions"
    shown = called(
        copy, copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/components/test_contracts.py", "-k", wanted
    )
    assert " passed" in shown
