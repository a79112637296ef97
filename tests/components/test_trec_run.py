"""Imported and replayed runs of other systems: trec_eval's own qrels, run and printed output, end to end."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

from harness import Experiment, Trial, run
from harness.components.chunkers import Fixed
from harness.components.retrievers import TrecRun
from harness.components.selectors import TopK
from harness.core.errors import DataError
from harness.data.dataset import load_dataset
from harness.data.importers import Options, import_dataset
from harness.running.launch_result import Launch
from reports import compare, report

METRICS = {
    "map": "map",
    "recip_rank": "mrr",
    "ndcg": "ndcg",
    **{f"ndcg_cut_{k}": f"ndcg@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)},
    **{f"map_cut_{k}": f"map@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)},
    **{f"recall_{k}": f"recall@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)},
    **{f"P_{k}": f"precision@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)},
    **{f"success_{k}": f"hit@{k}" for k in (1, 5, 10)},
    "Rprec": "rprec",
    "bpref": "bpref",
    "infAP": "infap",
    "gm_map": "gm_map",
    **{f"iprec_at_recall_{level / 10:.2f}": f"iprec@{level / 10}" for level in (0, 2, 3, 4, 5, 7, 8, 9, 10)},
}


def launched(data: Path, store: Path, *, run_name: str = "results") -> Launch:
    trial = Trial(
        str(data), Fixed(size=64), TrecRun(run=run_name), selector=(TopK(k=1000),), metrics=tuple(set(METRICS.values()))
    )
    return run(Experiment("replay", trial, []), store=store, log=False)


def imported(folder: Path, target: Path) -> Path:
    options = Options(qrels={"validation": "qrels.test"}, runs={"results": "results.test"})
    import_dataset("trec", folder, target, options=options)
    return target


def test_trec_evals_own_output_end_to_end(shared: Callable[[str], Path], tmp_path: Path) -> None:
    """Every shared measure, per query and as a mean, equals the output of trec_eval to 4 decimals."""
    folder = shared("trec-eval")
    (result,) = launched(imported(folder, tmp_path / "data"), tmp_path / "store").results
    printed = [
        line.split() for name in ("out.test.aq", "out.test.a") for line in (folder / name).read_text().splitlines()
    ]
    compared = 0
    for name, query, expected in printed:
        if name in METRICS:
            values = result.scores[METRICS[name]]
            value = result.mean(METRICS[name]) if query == "all" else values[result.queries.index(query)]
            assert value == pytest.approx(float(expected), abs=5.1e-5), (name, query)
            compared += 1
    assert compared > 100


def test_queries_that_returned_nothing_count_as_zero(shared: Callable[[str], Path], tmp_path: Path) -> None:
    """As with `trec_eval -c`: one judged query is missing from the run and counts as 0 in every mean."""
    folder, shorter = shared("trec-eval"), tmp_path / "source"
    shorter.mkdir()
    (shorter / "qrels.test").write_bytes((folder / "qrels.test").read_bytes())
    lines = (folder / "results.test").read_text().splitlines(keepends=True)
    left_out = lines[0].split()[0]
    (shorter / "results.test").write_text("".join(line for line in lines if line.split()[0] != left_out))
    (result,) = launched(imported(shorter, tmp_path / "data"), tmp_path / "store").results
    reference = _pytrec_eval(shorter)
    for name, metric in METRICS.items():
        if metric == "gm_map":
            continue
        mean = sum(values.get(name, 0.0) for values in reference.values()) / len(result.queries)
        assert result.scores[metric].mean() == pytest.approx(mean, abs=1e-6), name
    assert result.scores["map"][result.queries.index(left_out)] == 0


def _pytrec_eval(folder: Path) -> dict[str, dict[str, float]]:
    with (folder / "qrels.test").open() as file:
        qrels = pytrec_eval.parse_qrel(file)
    run: dict[str, dict[str, float]] = {}
    for line in (folder / "results.test").read_text().splitlines():
        query, _, doc, _, score, _ = line.split()
        run.setdefault(query, {})[doc] = float(np.float32(score))
    cuts = "5,10,15,20,30,100,200,500,1000"
    measures = {"map", "recip_rank", "ndcg", "success.1,5,10", "Rprec", "bpref", "infAP", "iprec_at_recall"}
    measures |= {f"{name}.{cuts}" for name in ("ndcg_cut", "map_cut", "recall", "P")}
    found: dict[str, dict[str, float]] = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    return found


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Three documents, two queries, a run with a tie and with ranks that contradict the scores."""
    source = tmp_path / "tiny"
    source.mkdir()
    (source / "docs.tsv").write_text("a\tSalt.\nb\tFlour.\nc\tWater.\n")
    (source / "queries.tsv").write_text("q1\tsalty?\nq2\twet?\n")
    (source / "qrels").write_text("q1 0 a 1\nq2 0 c 1\nq2 0 gone 1\n")
    (source / "run").write_text("q1 Q0 a 1 2.0 x\nq1 Q0 b 2 2.0 x\nq1 Q0 c 3 5.0 x\n")
    return source


def test_ties_and_ranks(tiny: Path, tmp_path: Path) -> None:
    """By score, ties by descending document id, ignoring the rank column; gold documents not in the run are missed."""
    import_dataset("trec", tiny, tmp_path / "data", options=Options(runs={"x": "run"}))
    trial = Trial(str(tmp_path / "data"), Fixed(size=9), TrecRun(run="x"), selector=(TopK(k=9),), metrics=("mrr",))
    launch = run(Experiment("ties", trial, []), store=tmp_path / "store", log=False)
    (result,) = launch.results
    assert result.scores["mrr"].tolist() == [pytest.approx(1 / 3), 0]
    assert [list(row) for row in result.evidence_outcomes] == [["found"], ["not_retrieved", "not_in_the_corpus"]]
    assert "1 of 3 evidence items are in documents missing from the corpus and cannot be found" in launch.warnings
    html = report(launch).html
    assert "not in the corpus" in html


def test_comments_and_further_columns(tiny: Path, tmp_path: Path) -> None:
    """As in trec_eval's own test files: both are ignored; a # inside an id is part of it."""
    (tiny / "docs.tsv").write_text("a#1\tSalt.\nb\tFlour.\nc\tWater.\n")
    (tiny / "qrels").write_text("# judged in May\nq1 0 a#1 1 0.5\n# and June\nq1 0 b 0\nq2 0 c -1\nq2 0 b 1\n")
    (tiny / "run").write_text("# best run\nq1 Q0 a#1 1 2.0 x y z\nq2 Q0 b 1 1.0 x\n")
    counts = import_dataset("trec", tiny, tmp_path / "data", options=Options(runs={"x": "run"}))
    assert counts["judgments with further columns, left out"] == 1
    first, second = load_dataset(tmp_path / "data", "validation").query_set.queries
    assert (first.irrelevant, first.unjudged, second.unjudged) == (("b",), (), ("c",))
    metrics = ("mrr", "bpref", "judged@1")
    trial = Trial(str(tmp_path / "data"), Fixed(size=9), TrecRun(run="x"), selector=(TopK(k=9),), metrics=metrics)
    (result,) = run(Experiment("comments", trial, []), store=tmp_path / "store", log=False).results
    assert [result.mean(metric) for metric in metrics] == [1.0, 1.0, 1.0]


def test_queries_without_relevant_documents_may_count_as_zero(tiny: Path, tmp_path: Path) -> None:
    """Excluded by default; with `unanswerable: zero` they count, as in trec_eval, and are not reported as excluded."""
    (tiny / "qrels").write_text("q1 0 a 1\nq2 0 c 0\n")
    import_dataset("trec", tiny, tmp_path / "data", options=Options(runs={"x": "run"}))
    trial = Trial(str(tmp_path / "data"), Fixed(size=9), TrecRun(run="x"), selector=(TopK(k=9),), metrics=("hit",))
    means, counts = [], []
    for unanswerable in ("skip", "zero"):
        counted = replace(trial, unanswerable=unanswerable)
        launch = run(Experiment(unanswerable, counted, []), store=tmp_path / "store", log=False)
        means.append(launch.results[0].mean("hit"))
        found = compare(launch)
        counts.append((found.queries, found.unanswerable, found.unmeasured))
    assert means == [1.0, 0.5]
    assert counts == [(1, 1, 0), (2, 0, 0)]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("# ours\nq1 Q0 a 1 x y and more", "run:2: score: expected a number, got 'x'"),
        ("q1 Q0 a 1 x y", "run:1: score: expected a number, got 'x'"),
        ("q1 Q0 a 1 nan y", "run:1: score: expected a number, got 'nan'"),
        ("q1 Q0 a 1", "run:1: expected query, Q0, document"),
        ("q1 Q0 a 1 1 y\nq1 Q0 a 2 0 y", "run:2: query 'q1' ranks document 'a' a second time"),
        ("q9 Q0 a 1 1 y", "run 'run' ranks none of the 2 queries, but queries such as 'q9'"),
        ("q1 Q0 z 1 1 y", "ranks 1 documents without a chunk in the corpus, such as 'z'"),
    ],
)
def test_faults_of_a_run(tiny: Path, tmp_path: Path, line: str, what: str) -> None:
    """The error is one line that names the file and the line."""
    (tiny / "run").write_text(line + "\n")
    trial = Trial(str(tmp_path / "data"), Fixed(size=9), TrecRun(run="run"), selector=(TopK(k=9),), metrics=("mrr",))

    def work() -> None:
        import_dataset("trec", tiny, tmp_path / "data", options=Options(runs={"run": "run"}))
        run(Experiment("faults", trial, []), store=tmp_path / "store", log=False)

    with pytest.raises(DataError) as caught:
        work()
    assert what in str(caught.value)


def test_an_unknown_run(tiny: Path, tmp_path: Path) -> None:
    """The error suggests a similar name."""
    import_dataset("trec", tiny, tmp_path / "data", options=Options(runs={"mine": "run"}))
    trial = Trial(str(tmp_path / "data"), Fixed(size=9), TrecRun(run="mien"), selector=(TopK(k=9),), metrics=("mrr",))
    with pytest.raises(DataError, match="no run named 'mien'. Did you mean 'mine'"):
        run(Experiment("faults", trial, []), store=tmp_path / "store", log=False)
