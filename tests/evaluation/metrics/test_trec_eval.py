"""Document measures equal trec_eval's: its own printed output, and pytrec_eval on random runs."""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import ir_measures
import numpy as np
import pytest
import pytrec_eval

from harness.core.records import Evidence, Query, Span
from harness.evaluation.metrics import Items, parse_metric, score_queries
from harness.evaluation.metrics.matching import Passage
from harness.evaluation.results import TrialResult

Qrels = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]

HARNESS_NAMES = {
    "map": "map",
    "recip_rank": "mrr",
    "ndcg": "ndcg",
    **{f"ndcg_cut_{k}": f"ndcg@{k}" for k in (5, 10, 20, 100, 1000)},
    **{f"map_cut_{k}": f"map@{k}" for k in (5, 10, 100)},
    **{f"recall_{k}": f"recall@{k}" for k in (5, 10, 20, 100, 1000)},
    **{f"P_{k}": f"precision@{k}" for k in (5, 10, 20, 100, 1000)},
    **{f"success_{k}": f"hit@{k}" for k in (1, 5, 10)},
    "Rprec": "rprec",
    "bpref": "bpref",
    "infAP": "infap",
    "11pt_avg": "11pt_avg",
    "set_P": "precision",
    "set_recall": "recall",
    "set_F": "f1",
    **{f"iprec_at_recall_{level / 10:.2f}": f"iprec@{level / 10}" for level in range(11)},
}


ROUNDED = {("iprec_at_recall_0.10", "301"), ("iprec_at_recall_0.60", "302"), ("11pt_avg", "302")}
"""Values for which trec_eval 10, which printed the output, differs from trec_eval 9 (and ir_measures): it rounds the
number of documents needed for a recall level to the nearest, so that 47 of 474 are a recall of .1."""


def harness_value(name: str, judged: dict[str, int], scores: dict[str, float], *, relevant_from: float = 0.0) -> float:
    """The harness's value for one query, with trec_eval's order: by score, ties by document name, descending."""
    ranked = sorted(scores, key=lambda doc: (scores[doc], doc), reverse=True)
    gold = tuple(Evidence((Span(doc, 0, 1),), float(grade), whole=True) for doc, grade in judged.items() if grade > 0)
    irrelevant = tuple(doc for doc, grade in judged.items() if grade == 0)
    unjudged = tuple(doc for doc, grade in judged.items() if grade < 0)
    query = Query("q", "?", gold, irrelevant=irrelevant, unjudged=unjudged)
    needed = Items.of(query, relevant_from=relevant_from)
    passages = [Passage(doc, 0, 1) for doc in ranked]
    scored = score_queries([parse_metric(name)], [needed], [passages], {}, lambda *_: [], unanswerable=0.0)
    return float(scored[name][0])


def test_trec_evals_own_output(shared: Callable[[str], Path]) -> None:
    """The values of all queries and their mean equal those that trec_eval printed, to 4 decimals."""
    folder = shared("trec-eval")
    qrels: Qrels = defaultdict(dict)
    for line in (folder / "qrels.test").read_text().splitlines():
        query, _, doc, grade = line.split()
        qrels[query][doc] = int(grade)
    run: Run = defaultdict(dict)
    for line in (folder / "results.test").read_text().splitlines():
        query, _, doc, _, score, _ = line.split()
        run[query][doc] = float(np.float32(score))
    compared = 0
    for printed in (folder / "out.test.aq").read_text().splitlines() + (folder / "out.test.a").read_text().splitlines():
        name, query, expected = printed.split()
        if name not in HARNESS_NAMES:
            continue
        if (name, query) in ROUNDED or (query == "all" and name in {measure for measure, _ in ROUNDED}):
            continue
        asked = list(run) if query == "all" else [query]
        values = [harness_value(HARNESS_NAMES[name], qrels[q], run[q]) for q in asked]
        assert np.mean(values) == pytest.approx(float(expected), abs=5.1e-5), (name, query)
        compared += 1
    assert compared > 40


def test_the_geometric_mean(shared: Callable[[str], Path]) -> None:
    """gm_map over the three queries is .1051, as printed by trec_eval."""
    printed = dict(line.split()[::2] for line in (shared("trec-eval") / "out.test.a").read_text().splitlines())
    values = [line.split() for line in (shared("trec-eval") / "out.test.aq").read_text().splitlines()]
    by_query = [float(value) for name, query, value in values if name == "map" and query != "all"]
    result = TrialResult("t", "t", {}, ["1", "2", "3"], ["1", "2", "3"], {"gm_map": np.array(by_query)}, [])
    assert result.mean("gm_map") == pytest.approx(float(printed["gm_map"]), abs=2e-4)
    zero = TrialResult("t", "t", {}, ["1", "2"], ["1", "2"], {"gm_map": np.array([0.0, 1.0])}, [])
    assert zero.mean("gm_map") == pytest.approx(np.sqrt(1e-5))


@pytest.mark.parametrize("level", [1, 2, 3])
def test_random_runs_against_pytrec_eval(level: int) -> None:
    """Graded judgments, pooled documents left unjudged, ties, unknown documents, queries that find nothing, and queries
    without a document that is relevant at the level."""
    rng = np.random.default_rng(4)
    documents = [f"d{n}" for n in range(40)]
    qrels: Qrels = {}
    run: Run = {}
    for query in map(str, range(60)):
        qrels[query] = {
            doc: int(grade) for doc, grade in zip(documents, rng.integers(-1, 4, 40), strict=True) if rng.random() < 0.3
        }
        qrels[query][documents[0]] = 2
        retrieved = rng.choice(40, rng.integers(1, 40), replace=False)
        run[query] = {documents[n]: float(np.round(rng.random(), 1)) for n in retrieved}
    measures = {"map", "recip_rank", "ndcg", "ndcg_cut", "map_cut", "recall", "P", "success", "Rprec", "bpref", "infAP"}
    measures |= {"11pt_avg", "iprec_at_recall", "set_P", "set_recall", "set_F"}
    evaluated = pytrec_eval.RelevanceEvaluator(qrels, measures, relevance_level=level).evaluate(run)
    compared = set()
    for query, values in evaluated.items():
        for name, expected in values.items():
            if name in HARNESS_NAMES:
                found = harness_value(HARNESS_NAMES[name], qrels[query], run[query], relevant_from=level)
                assert found == pytest.approx(expected, abs=1e-6), (query, name)
                compared.add(name)
    assert len(compared) > 30


def test_judged_equals_ir_measures() -> None:
    """Judged@k divides by the number retrieved if it is below k; grades of 0 and above are judged."""
    rng = np.random.default_rng(6)
    documents = [f"d{n}" for n in range(30)]
    qrels: Qrels = {str(q): {doc: int(rng.integers(0, 3)) for doc in documents[::2]} for q in range(20)}
    run: Run = {
        str(q): {documents[n]: float(n) for n in rng.choice(30, rng.integers(1, 30), replace=False)} for q in range(20)
    }
    for k in (5, 10, 100):
        for metric in ir_measures.iter_calc([ir_measures.Judged @ k], qrels, run):
            found = harness_value(f"judged@{k}", qrels[metric.query_id], run[metric.query_id])
            assert found == pytest.approx(metric.value), (k, metric.query_id)
