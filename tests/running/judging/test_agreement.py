"""From a grading sheet to corrected means: sampling, labelling in the terminal, agreement and reports."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openai_server import Asked, default_server, grade_all

from harness import read_experiment
from harness.core.errors import DataError
from harness.running.judging.agreement_store import keep_agreement, stored_agreement
from harness.running.judging.agreement_study import agree
from harness.running.judging.grading_sample import sample
from harness.running.judging.grading_sheet import Row, read_sheet, write_sheet
from harness.running.models import Models
from harness.running.session import Session
from judges import ContextPrecision

HARNESS = Path(sys.executable).parent / "harness"


def by_people(passage: str) -> int:
    return len(passage) % 4


def behave(asked: Asked) -> Any:
    """Agrees with people except on passages of some lengths."""
    return grade_all(asked, lambda _, text: 3 if len(text) % 8 == 1 else by_people(text))


@pytest.fixture
def project(garden_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An experiment that has run."""
    (tmp_path / "x.yaml").write_text(
        "name: sheet\ndata: garden\ntokenizer: words\nchunker: {fixed: {size: 15}}\nretriever: bm25\n"
        "selector: {top_k: {k: 6}}\nmetrics: [recall@3]\njudges: [{context_precision: {model: m}}]\n"
        "grid: {selector.k: [3, 6]}\n"
    )
    with default_server(monkeypatch, behave) as server:
        done = harness(tmp_path, "run", "x.yaml", "--no-mlflow")
        assert done.returncode == 0, done.stderr
        yield tmp_path, server


def harness(folder: Path, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HARNESS, *arguments], cwd=folder, capture_output=True, text=True, check=False, env=dict(os.environ), **more
    )


def test_passages_are_drawn_from_the_pool_of_all_trials(project: Any) -> None:
    """As many per query as requested; the same seed draws the same passages."""
    folder, _ = project
    study = read_experiment(folder / "x.yaml")
    rows = sample(study, store=folder / ".harness", per_query=2, seed=3)
    assert len(rows) == 24  # the thirteenth query finds nothing
    assert {(row.pool, row.drawn, row.grade) for row in rows} == {(6, 2, None)}
    assert rows == sample(study, store=folder / ".harness", per_query=2, seed=3)
    assert rows != sample(study, store=folder / ".harness", per_query=2, seed=4)
    assert len({row.query for row in sample(study, store=folder / ".harness", queries=5)}) == 5


def test_from_the_sheet_to_the_report(project: Any) -> None:
    """sample, label, agree, run: the report says uncalibrated until enough is graded, and shows the agreement."""
    folder, server = project
    assert "uncalibrated" in harness(folder, "run", "x.yaml", "--no-mlflow").stdout
    done = harness(folder, "judge", "sample", "x.yaml", "--out", "sheet.jsonl", "--per-query", "6")
    assert done.stdout.startswith("sheet.jsonl: 72 passages of 12 queries to grade")
    rows = read_sheet(folder / "sheet.jsonl")
    first = harness(folder, "judge", "label", "sheet.jsonl", input="3\nq\n")
    assert "sheet.jsonl: 1 of 72 graded; run this again" in first.stdout
    again = "x\n2\nb\n" + "".join(f"{by_people(row.passage)}\n" for row in rows[1:])
    second = harness(folder, "judge", "label", "sheet.jsonl", input=again)
    assert "sheet.jsonl: 72 of 72 graded" in second.stdout
    graded = read_sheet(folder / "sheet.jsonl")
    assert [row.grade for row in graded] == [3, *(by_people(row.passage) for row in rows[1:])]
    before = len(server.asked)
    done = harness(folder, "judge", "agree", "x.yaml", "sheet.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    assert len(server.asked) == before
    found = json.loads(done.stdout)
    people = np.array([row.grade >= 2 for row in graded])
    judge = np.array([len(row.passage) % 8 == 1 or by_people(row.passage) >= 2 for row in graded])
    table = [(people & judge).sum(), (people & ~judge).sum(), (~people & judge).sum(), (~people & ~judge).sum()]
    assert list(found["confusion"].values()) == table
    assert found["sensitivity"]["value"] == pytest.approx(table[0] / people.sum())
    # The whole pool is graded, so the corrected mean equals the mean of people's grades.
    means = [np.mean([row.grade >= 2 for row in graded if row.query == query]) for query in {r.query for r in graded}]
    assert found["trials"][1]["corrected"]["value"] == pytest.approx(np.mean(means))
    output = harness(folder, "judge", "agree", "x.yaml", "sheet.jsonl").stdout
    assert "reports still say uncalibrated: 72 labels, 100 are needed" in output
    assert "uncalibrated: kappa" in harness(folder, "run", "x.yaml", "--no-mlflow").stdout


def test_a_sheet_with_grades_is_not_overwritten(project: Any) -> None:
    """Grades are costly; only a sheet without grades may be drawn again."""
    folder, _ = project
    draw = ("judge", "sample", "x.yaml", "--out", "sheet.jsonl")
    assert harness(folder, *draw).returncode == harness(folder, *draw).returncode == 0
    rows = read_sheet(folder / "sheet.jsonl")
    write_sheet(folder / "sheet.jsonl", [rows[0]._replace(grade=1), *rows[1:]])
    done = harness(folder, *draw)
    assert done.returncode == 2
    assert "already contains grades; name another file" in done.stderr
    assert read_sheet(folder / "sheet.jsonl")[0].grade == 1


def test_position_bias_is_measured_with_swap(project: Any) -> None:
    """A judge that favours the first slot flips when the order is reversed."""
    folder, server = project
    study = read_experiment(folder / "x.yaml")
    rows = [row._replace(grade=by_people(row.passage)) for row in sample(study, store=folder / ".harness", per_query=5)]
    lines: list[str] = []
    unbiased = agree(study, rows, store=folder / ".harness", swap=True, notify=lines.append)
    assert lines[0].startswith("context_precision (m): 12 calls; ")
    assert unbiased.swap_flips is not None
    assert unbiased.swap_flips.value == 0.0
    assert agree(study, rows, store=folder / ".harness", models=Models(offline=True)).swap_flips is None

    def biased(asked: Asked) -> Any:
        return {slot: {"why": "", "grade": 3 if slot == "c01" else 0} for slot in asked.slots}

    server.behave = biased
    (folder / "x.yaml").write_text((folder / "x.yaml").read_text().replace("model: m", "model: biased"))
    other = read_experiment(folder / "x.yaml")
    assert harness(folder, "run", "x.yaml", "--no-mlflow").returncode == 0
    flips = agree(other, rows, store=folder / ".harness", swap=True).swap_flips
    assert flips is not None
    assert flips.value == pytest.approx(2 / 6)


def test_corrected_means_are_unbiased_for_overlapping_trials(project: Any) -> None:
    """Over 60 sheets of five passages per query, the means of both trials and their difference are right on average."""
    folder, _ = project
    study = read_experiment(folder / "x.yaml")
    whole = sample(study, store=folder / ".harness", per_query=6)
    graded = [row._replace(grade=by_people(row.passage)) for row in whole]
    truth = agree(study, graded, store=folder / ".harness", models=Models(offline=True))
    found = []
    for seed in range(60):
        # Five of six passages of each of twelve queries are 60 grades; correction needs 50.
        rows = sample(study, store=folder / ".harness", per_query=5, seed=seed)
        rows = [row._replace(grade=by_people(row.passage)) for row in rows]
        made = agree(study, rows, store=folder / ".harness", models=Models(offline=True))
        found.append([made.trials[0].corrected[0], made.trials[1].corrected[0], made.trials[1].difference[0]])  # type: ignore[index]
    expected = [truth.trials[0].corrected[0], truth.trials[1].corrected[0], truth.trials[1].difference[0]]  # type: ignore[index]
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert np.all(np.abs(np.mean(found, axis=0) - expected) < 4 * error + 1e-9)


def test_a_sheet_corrects_only_the_trials_it_was_drawn_from(project: Any) -> None:
    """With deeper selections or edited passages, there are no corrected means, and a note says why."""
    folder, _ = project
    study = read_experiment(folder / "x.yaml")
    rows = [r._replace(grade=by_people(r.passage)) for r in sample(study, store=folder / ".harness", per_query=6)]
    (folder / "y.yaml").write_text((folder / "x.yaml").read_text().replace("[3, 6]", "[3, 8]"))
    assert harness(folder, "run", "y.yaml", "--no-mlflow").returncode == 0
    other = agree(read_experiment(folder / "y.yaml"), rows, store=folder / ".harness")
    assert other.trials[0].corrected is None
    assert "the trials select other passages than those the sheet was drawn from" in other.notes[0]
    assert other.labels == 72
    edited = [rows[0]._replace(passage=rows[0].passage + " "), *rows[1:]]
    found = agree(study, edited, store=folder / ".harness")
    assert found.trials[0].corrected is None
    assert "are not those that were drawn" in found.notes[0]


def test_half_graded_queries_are_left_out(project: Any) -> None:
    """An ungraded passage must not count as irrelevant: people find everything relevant, so the mean is 1."""
    folder, _ = project
    study = read_experiment(folder / "x.yaml")
    rows = [row._replace(grade=3) for row in sample(study, store=folder / ".harness", per_query=6)]
    rows[0] = rows[0]._replace(grade=None)
    found = agree(study, rows, store=folder / ".harness")
    assert "1 queries with passages not graded are left out" in found.notes[0]
    assert found.trials[0].corrected is not None
    assert found.trials[0].corrected.value == pytest.approx(1.0)
    assert found.trials[0].corrected.high <= 1.0


def test_without_judgments_only_grades_are_used(project: Any) -> None:
    """If only the sheet's passages are judged, there is no judged mean, and the corrected one comes from grades."""
    folder, _ = project
    (folder / "x.yaml").write_text((folder / "x.yaml").read_text().replace("model: m", "model: m, reasons: false"))
    study = read_experiment(folder / "x.yaml")
    rows = [row._replace(grade=3) for row in sample(study, store=folder / ".harness", per_query=5)]
    found = agree(study, rows, store=folder / ".harness")
    for trial in found.trials:
        assert trial.judged is None
        assert trial.corrected is not None
        assert trial.corrected.low <= 1.0 <= trial.corrected.high + 1e-9


def test_a_calibration_belongs_to_one_judge_configuration(project: Any) -> None:
    """A different temperature, threshold or data set is uncalibrated; fewer labels do not replace more."""
    folder, _ = project
    session = Session(read_experiment(folder / "x.yaml"), folder / ".harness")
    judge = ContextPrecision("m")
    known = {"kappa": 0.5, "low": 0.4, "high": 0.6}
    assert keep_agreement(judge, session.store, session.data, {**known, "labels": 120}) == 120
    assert keep_agreement(judge, session.store, session.data, {**known, "labels": 20}) == 120
    assert stored_agreement(judge, session.store, session.data) == "kappa 0.50 (0.40 … 0.60) on 120 labels"
    for other in (
        ContextPrecision("m", temperature=1.0),
        ContextPrecision("m", relevant_from=3),
        ContextPrecision("m", reasons=False),
        ContextPrecision("n"),
    ):
        assert stored_agreement(other, session.store, session.data) == "uncalibrated"
    assert stored_agreement(judge, session.store, "other data") == "uncalibrated"


SHEETS = {
    "not json": ("{", "sheet.jsonl:1: not JSON"),
    "other keys": ('{"query": "a"}', "sheet.jsonl:1: expected an object with the keys query, question"),
    "grade 5": (
        json.dumps(Row("q", "?", "", "p", 2, 1, "d")._asdict() | {"grade": 5}),
        "grade: expected 0, 1, 2, 3 or null, got 5",
    ),
    "grade true": (json.dumps(Row("q", "?", "", "p", 2, 1, "d")._asdict() | {"grade": True}), "got true"),
    "drawn": (json.dumps(Row("q", "?", "", "p", 1, 2, "d", 1)._asdict()), "0 < drawn <= pool"),
    "unknown query": (
        json.dumps(Row("q", "?", "", "p", 2, 1, "d", 1)._asdict()),
        "the sheet's query 'q' is not one of 'garden'",
    ),
    "no grade": (json.dumps(Row("q", "?", "", "p", 2, 1, "d")._asdict()), "the sheet has no grade"),
}


@pytest.mark.parametrize("name", SHEETS)
def test_invalid_sheets(name: str, project: Any) -> None:
    """One line with the file, the line and what is expected; exit code 2."""
    folder, _ = project
    content, expected = SHEETS[name]
    (folder / "sheet.jsonl").write_text(content + "\n")
    done = harness(folder, "judge", "agree", "x.yaml", "sheet.jsonl")
    assert done.returncode == 2
    assert expected in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_sheet_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Including line separators and unpaired surrogates; a missing file is an error."""
    rows = [Row("q", "Wie?", "", 'Zeile\n"zwei" \u2028 drei \ud800', 3, 1, "d", 2), Row("r", "?", "a", "", 1, 1, "e")]
    write_sheet(tmp_path / "s.jsonl", rows)
    assert read_sheet(tmp_path / "s.jsonl") == rows
    with pytest.raises(DataError, match="harness judge sample"):
        read_sheet(tmp_path / "none.jsonl")
