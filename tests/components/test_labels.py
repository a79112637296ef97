"""Recorded grades: file formats, agreement, and a judge that reads its grades from a file."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness import read_experiment, run
from harness.components.labels import both_raters, read_labels
from harness.core.errors import ConfigError, DataError
from harness.data.importers import Options, import_dataset
from harness.evaluation.stats.rater_agreement import graded_kappa
from harness.running.judging.agreement import labels_agreement
from harness.running.judging.agreement_study import agree_with_labels

HARNESS = Path(sys.executable).parent / "harness"


def harness(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([HARNESS, *arguments], cwd=folder, capture_output=True, text=True, check=False)


def test_three_formats_say_the_same(tmp_path: Path) -> None:
    """CSV, JSON lines and qrels; a grade below 0 means unjudged, comments are skipped, repeated grades are kept."""
    (tmp_path / "a.csv").write_text("query_id,doc_id,label\nq1,p1,3\nq1,p1,1\nq1,p2,-1\n")
    rows = [("q1", "p1", 3), ("q1", "p1", 1), ("q1", "p2", -1)]
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps({"query": q, "passage": p, "grade": g}) + "\n" for q, p, g in rows)
    )
    (tmp_path / "a.txt").write_text("# judged\nq1 0 p1 3\nq1 0 p1 1 sure\nq1 0 p2 -1\n")
    for name in ("a.csv", "a.jsonl", "a.txt"):
        found = read_labels(tmp_path / name)
        assert found.grades == {("q1", "p1"): [3, 1]}
        assert (found.count, found.unjudged) == (2, 1)
        assert found.of(("q0", "q1"), ("p9", "p1")) == [3, 1]
        assert found.of(("q1",), ("p9",)) == ()


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.csv", "query,passage\nq,p\n", "a.csv:2: has no column grade or label"),
        ("a.csv", "query,passage,grade\nq,p\n", "a.csv:2: expected 3 columns"),
        ("a.csv", "query,passage,grade\nq,p,good\n", "a.csv:2: grade: expected a whole number from 0 to 9, got 'good'"),
        ("a.jsonl", '{"query": "q", "passage": "p", "grade": 1.5}\n', "a.jsonl:1: grade: expected a whole number"),
        ("a.jsonl", '{"query": "q", "passage": [], "grade": 1}\n', "a.jsonl:1: passage: expected text, got []"),
        ("a.jsonl", "[]\n", "a.jsonl:1: expected a JSON object"),
        ("a.jsonl", "{]\n", "a.jsonl:1: not valid JSON"),
        ("a.qrels", "q 0 p\n", "a.qrels:1: expected query, iteration, passage and grade, got 3 columns"),
        ("a.qrels", "q 0 p 12\n", "a.qrels:1: grade: expected a whole number from 0 to 9, got '12'"),
        ("a.qrels", "\n", "a.qrels: contains no label"),
        ("none.csv", None, "none.csv: No such file"),
        ("none.qrels", None, "none.qrels: no such file"),
    ],
)
def test_faults_of_a_file(tmp_path: Path, name: str, content: str | None, what: str) -> None:
    """The error is one line with the file and the line number."""
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(DataError) as caught:
        read_labels(tmp_path / name)
    assert what in str(caught.value)


def test_graded_kappa_by_hand() -> None:
    """Two of three agree, by chance (2 * 1 + 1 * 2) / 9: kappa (2/3 - 4/9) / (5/9)."""
    assert graded_kappa([[1, 1], [0, 1]]) == pytest.approx((2 / 3 - 4 / 9) / (5 / 9))


def test_agreement_of_two_files_by_hand(tmp_path: Path) -> None:
    """Relevant from grade 2: both, people only, neither; the second grades of p1 are compared with each other."""
    (tmp_path / "people.csv").write_text("query,passage,grade\nq1,p1,3\nq1,p1,0\nq1,p2,2\nq2,p9,1\n")
    (tmp_path / "judge.csv").write_text("query,passage,grade\nq1,p1,2\nq1,p1,1\nq1,p2,0\n")
    found = labels_agreement(read_labels(tmp_path / "judge.csv"), read_labels(tmp_path / "people.csv"))
    assert tuple(found.confusion) == (1, 1, 0, 1)
    assert (found.labels, found.missing, found.judge) == (3, 1, "judge")
    assert found.grades[3][2] == found.grades[0][1] == found.grades[2][0] == 1
    assert found.notes == [
        "1 passage is graded more than once: the first grades of both files are compared, then the second"
    ]
    assert np.isnan(found.kappa.low)  # of two queries
    strict = labels_agreement(
        read_labels(tmp_path / "judge.csv"), read_labels(tmp_path / "people.csv"), relevant_from=1
    )
    assert tuple(strict.confusion) == (1, 1, 1, 0)


def test_the_command_on_files(tmp_path: Path) -> None:
    """Two files, or one with both columns; files that do not match give a one-line error."""
    (tmp_path / "both.csv").write_text("query,passage,people,judge\n" + "q1,p1,3,3\nq1,p2,0,0\nq2,p1,2,0\n" * 5)
    (tmp_path / "people.qrels").write_text("q1 0 p1 3\nq1 0 p2 0\n")
    (tmp_path / "judge.qrels").write_text("q1 0 p1 2\nq1 0 p2 0\n")
    assert both_raters(tmp_path / "both.csv")
    done = harness(tmp_path, "judge", "agree", "--labels", "both.csv", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["labels"], found["confusion"]["people_only"]) == (0, 15, 5)
    done = harness(tmp_path, "judge", "agree", "--labels", "judge.qrels", "--people", "people.qrels")
    assert "kappa        1.000" in done.stdout
    for arguments, what in (
        (
            ("--labels", "judge.qrels"),
            "judge.qrels has no columns people and judge; name the human labels with --people",
        ),
        (
            ("x.yaml", "--labels", "judge.qrels"),
            "--labels replaces the judge; do not combine it with an experiment, --judge or --swap",
        ),
        ((), "name an experiment and a graded sheet, or --people FILE, or --labels FILE"),
        (("--labels", "both.csv", "--relevant-from", "0"), "--relevant-from 0: expected a grade from 1 to 9"),
        (("--labels", "both.csv", "--people", "people.qrels"), "both.csv:2: has no column grade or label"),
    ):
        done = harness(tmp_path, "judge", "agree", *arguments)
        assert (done.returncode, what in done.stderr, done.stderr.count("\n")) == (2, True, 1), done.stderr


GARDEN = """
name: recorded
data: garden
tokenizer: words
chunker: {fixed: {size: 15}}
retriever: bm25
selector: {top_k: {k: 3}}
metrics: [recall@3]
judges: [{recorded: {labels: labels.csv, relevant_from: 1}}]
grid: {selector.k: [2, 3]}
"""


def test_a_grid_judged_from_a_file(garden_data: Path, tmp_path: Path) -> None:
    """By document: passages of bed0 have grade 2, others 0; bed1 has no grade, which is a failure, not a number."""
    experiment = tmp_path / "x.yaml"
    experiment.write_text(GARDEN)
    queries = [json.loads(line) for line in (garden_data / "queries/validation.jsonl").read_text().splitlines()]
    rows = [(q["id"], f"bed{bed}", 2 if bed == 0 else 0) for q in queries for bed in (0, 2, 3, 4, 5)]
    (tmp_path / "labels.csv").write_text("query,doc,grade\n" + "".join(f"{q},{d},{g}\n" for q, d, g in rows))
    launch = run(read_experiment(experiment), store=tmp_path / "s", log=False)
    small, large = (result.judged["recorded_precision"] for result in launch.results)
    assert large.total == small.total == len(queries)
    assert 0 < small.complete < small.total
    assert launch.judging_report.judges[0].failures["missing_label"] > 0
    assert "labels.csv: passage bed1:" in launch.judging_report.judges[0].example
    assert launch.judging_report.judges[0].example.endswith("has no grade")
    assert "judge.recorded.labels" in launch.results[0].params
    before = launch.results[0].fingerprint
    with (tmp_path / "labels.csv").open("a") as file:
        file.write("".join(f"{q['id']},bed1,0\n" for q in queries))
    launch = run(read_experiment(experiment), store=tmp_path / "s", log=False)
    assert launch.results[0].judged["recorded_precision"].complete == len(queries)
    assert launch.results[0].fingerprint != before
    people = read_labels(tmp_path / "labels.csv")
    found = agree_with_labels(read_experiment(experiment), people, store=tmp_path / "s")
    assert (found.kappa.value, found.missing, found.judge) == (1.0, 0, "recorded")


def test_one_text_under_two_ids_keeps_both_grades(make_data: Callable[..., Path], tmp_path: Path) -> None:
    """With ids, each has its own grade; a file that uses texts and has two different grades leaves it undecided."""
    text = "Salt the water until it tastes of the sea."
    make_data(
        [{"id": "a", "text": text}, {"id": "b", "text": text}], [{"id": "q", "text": "salt water", "evidence": []}]
    )
    (tmp_path / "x.yaml").write_text(
        "name: twice\ndata: tiny\ntokenizer: words\nchunker: {fixed: {size: 50}}\nretriever: bm25\n"
        "metrics: [hit@1]\njudges: [{recorded: {labels: labels.jsonl}}]\n"
    )

    def judged(*rows: dict[str, Any]) -> Any:
        (tmp_path / "labels.jsonl").write_text("".join(json.dumps({"query": "q", **row}) + "\n" for row in rows))
        launch = run(read_experiment(tmp_path / "x.yaml"), store=tmp_path / "s", log=False)
        return launch.results[0].judged["recorded_precision"].values[0], launch.judging_report.judges[0].example

    assert judged({"passage": "a", "grade": 3}, {"passage": "b", "grade": 0})[0] == 0.5
    assert judged({"text": text, "grade": 3})[0] == 1.0
    value, example = judged({"text": text, "grade": 3}, {"text": text, "grade": 0})
    assert (value != value, "has conflicting grades" in example) == (True, True)


def test_a_file_must_be_named(tmp_path: Path) -> None:
    """The file must exist, too."""
    (tmp_path / "x.yaml").write_text(GARDEN.replace("labels: labels.csv, ", ""))
    with pytest.raises(ConfigError, match="judges\\[0\\].recorded: labels: set this to the file of recorded grades"):
        read_experiment(tmp_path / "x.yaml")
    (tmp_path / "x.yaml").write_text(GARDEN)
    with pytest.raises(ConfigError, match="recorded: labels: .*labels.csv does not exist"):
        read_experiment(tmp_path / "x.yaml")


def test_a_published_kappa_without_a_server(shared: Callable[[str], Path], tmp_path: Path) -> None:
    """LLMJudge 2024: the judge `h2oloo-fewself` against NIST through import, replay and judging: .428 from grade 2 on,
    and .2774 over all grades, as published."""
    folder, source = shared("llmjudge"), tmp_path / "llmjudge"
    source.mkdir()
    qrels = (folder / "llmjudge_test_qrel_idx.txt").read_text()
    (source / "qrels").write_text(qrels)
    pairs = [line.split() for line in qrels.splitlines() if line.strip()]
    (source / "pool").write_text("".join(f"{q} Q0 {p} 1 {-at} pool\n" for at, (q, _, p, _) in enumerate(pairs)))
    import_dataset("trec", source, tmp_path / "data", options=Options(runs={"pool": "pool"}))
    (tmp_path / "x.yaml").write_text(
        f"name: llmjudge\ndata: {tmp_path / 'data'}\ntokenizer: words\nchunker: {{fixed: {{size: 9}}}}\n"
        "retriever: {trec_run: {run: pool}}\nmetrics: [hit@1]\n"
        f"judges: [{{recorded: {{labels: {folder / 'labels' / 'h2oloo-fewself.txt'}}}}}]\n"
    )
    study = read_experiment(tmp_path / "x.yaml")
    launch = run(study, store=tmp_path / "s", log=False)
    assert (launch.judging_report.judges[0].judgments, launch.judging_report.judges[0].failures) == (4423, {})
    found = agree_with_labels(study, read_labels(source / "qrels"), store=tmp_path / "s")
    assert (found.labels, found.missing) == (4423, 0)
    assert found.kappa.value == pytest.approx(0.428, abs=0.0005)
    assert found.graded == pytest.approx(0.2774, abs=0.00005)
