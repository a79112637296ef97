"""Comparison with published figures: agreement, known differences, and the command."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from messages import without_line

from harness import read_experiment
from harness.core.errors import ConfigError
from harness.data.importers import Options, import_dataset
from harness.running.launch_history import stored_launch
from reports.published_check import Figure, differing, figures, text

HARNESS = Path(sys.executable).parent / "harness"
ROOT = Path(__file__).parents[2]
TABLES = sorted((ROOT / "experiments" / "published").glob("*.yaml"))

BASE = """
name: table
data: garden
tokenizer: words
chunker: {fixed: {size: 15}}
retriever: bm25
selector: {top_k: {k: 3}}
metrics: [recall@3]
grid: {selector.k: [1, 3]}
"""


def harness(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([HARNESS, *arguments], cwd=folder, capture_output=True, text=True, check=False)


def test_tolerance_is_decimal() -> None:
    """.70 and .69 are .01 apart in spite of rounding errors; a missing figure is never within."""
    assert Figure("t", "recall", 0.70, 0.69, 0.01).within
    assert not Figure("t", "recall", 0.70, 0.6899, 0.01).within
    assert not Figure("t", "recall", 0.70, float("nan"), 0.01).within


def test_a_known_reason_is_shown_and_not_counted() -> None:
    """Of three figures, one agrees, one differs for a known reason, one differs."""
    found = [
        Figure("a", "recall@5", 0.5, 0.5, 0.01),
        Figure("a", "mrr", 0.5, 0.7, 0.01, "the published code gives .7"),
        Figure("b", "recall@5", 0.5, 0.4, 0.01),
    ]
    assert [figure.name for figure in differing(found)] == ["b"]
    output = text(found, "A table")
    assert "the published code gives .7" in output
    assert output.endswith("1 of 3 figures agree within 0.01; 1 differ for a known reason")


def test_the_command(garden_data: Path, tmp_path: Path) -> None:
    """Scores what the table names, in its scale; exit code 1 if a figure differs, 0 if all agree."""
    (tmp_path / "x.yaml").write_text(BASE)
    assert harness(tmp_path, "run", "x.yaml", "--no-mlflow").returncode == 0
    done = harness(tmp_path, "compare", "x.yaml", "--published")
    assert (done.returncode, "'table' has no `published` part" in done.stderr) == (2, True)
    values = json.loads(harness(tmp_path, "compare", "x.yaml", "--json").stdout)["rows"][1]["values"]
    table = (
        "published:\n  source: A table\n  scale: 100\n  tolerance: 0.001\n  rows:\n"
        "    - {trial: {selector.top_k.k: 3}, values: {recall@3: %s, chunks: %s}}\n"
    )
    (tmp_path / "x.yaml").write_text(BASE + table % (100 * values["recall@3"], values["chunks"]))
    done = harness(tmp_path, "compare", "x.yaml", "--published")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("A table\n")
    assert done.stdout.endswith("2 of 2 figures agree within 0.001\n")
    (tmp_path / "x.yaml").write_text(BASE + table % (100 * values["recall@3"] + 1, values["chunks"]))
    done = harness(tmp_path, "compare", "x.yaml", "--published", "--json")
    found = json.loads(done.stdout)["figures"]
    assert (done.returncode, [figure["within"] for figure in found]) == (1, [False, True])
    assert found[0]["difference"] == pytest.approx(-0.01)
    (tmp_path / "x.yaml").write_text(BASE + (table % (1, 1)).replace("k: 3", "k: 7"))
    done = harness(tmp_path, "compare", "x.yaml", "--published")
    assert (done.returncode, "published.rows.trial: no trial has selector.top_k.k: 7" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("table", "what"),
    [
        ("published: 5", "published: expected a mapping with the keys source, tolerance, scale, people, rows"),
        ("published: {source: a, rows: []}", "published: expected `source`, the source of the figures"),
        ("published: {source: a, rows: [{values: {mrr: 1}}]}", "published.tolerance: expected a number above 0"),
        (
            "published: {source: a, tolerance: 1, rows: [{values: {mrrr: 1}}]}",
            "published.rows[0].values: expected a metric, got 'mrrr'",
        ),
        (
            "published: {source: a, tolerance: 1, rows: [{values: {mrr: high}}]}",
            "published.rows[0].values.mrr: expected a number, got 'high'",
        ),
        (
            "published: {source: a, tolerance: 1, rows: [{judge: recorded, values: {kappa: 1}}]}",
            "published.rows[0].judge: no judge 'recorded'. Judges: none",
        ),
        (
            "judges: [heuristic_precision]\n"
            "published: {source: a, tolerance: 1, rows: [{judge: heuristic_precision, values: {kappa: 1}}]}",
            "published.people: name the file of human labels",
        ),
        (
            "judges: [heuristic_precision]\n"
            "published: {source: a, tolerance: 1, rows: [{judge: heuristic_precision, values: {mrr: 1}}]}",
            "published.rows[0].values: expected kappa or graded_kappa, got 'mrr'",
        ),
    ],
)
def test_faults_of_a_table(tmp_path: Path, table: str, what: str) -> None:
    """One line with file and key."""
    (tmp_path / "x.yaml").write_text(BASE + table)
    with pytest.raises(ConfigError) as caught:
        read_experiment(tmp_path / "x.yaml")
    assert without_line(caught.value).startswith("x.yaml: ")
    assert str(caught.value).startswith("x.yaml:")
    assert what in str(caught.value)


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_the_shipped_tables_can_be_read(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every trial that a row names is in the grid, and every figure has a source."""
    monkeypatch.setenv("LLMJUDGE_LABELS", str(tmp_path))
    monkeypatch.setenv("LLMJUDGE_PEOPLE", str(tmp_path / "people"))
    for name in re.findall(r"LABELS}/(.+?)\.txt", path.read_text()):
        (tmp_path / f"{name}.txt").write_text("q 0 p 1\n")
    study = read_experiment(path)
    assert study.published is not None
    assert study.published.source
    every = [trial.params() for trial in study.trials()]
    for row in study.published.rows:
        assert row.judge or any(all(params.get(k) == v for k, v in row.trial.items()) for params in every)


def test_what_trec_eval_printed(shared: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest of the tables, end to end: all figures agree, except for known differences."""
    options = Options(qrels={"validation": "qrels.test"}, runs={"results": "results.test"})
    import_dataset("trec", shared("trec-eval"), tmp_path / "data", options=options)
    monkeypatch.setenv("TREC_EVAL", str(tmp_path / "data"))
    path = ROOT / "experiments" / "published" / "trec_eval.yaml"
    monkeypatch.chdir(tmp_path)
    assert harness(tmp_path, "run", str(path), "--no-mlflow", "--store", "s").returncode == 0
    found = figures(stored_launch(read_experiment(path), store=tmp_path / "s"))
    assert len(found) == 21
    assert differing(found) == []
    assert sum(figure.within for figure in found) >= 18
