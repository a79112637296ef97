"""Document measures equal trec_eval's: its own printed output, and pytrec_eval on random runs."""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

from harness.metrics import MEASURES, Items, Ranking, parse_metric
from harness.metrics.matching import Passage
from harness.model import Evidence, Span

Qrels = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]

OURS = {
    "map": "map",
    "recip_rank": "mrr",
    "ndcg": "ndcg",
    **{f"ndcg_cut_{k}": f"ndcg@{k}" for k in (5, 10, 20, 100, 1000)},
    **{f"map_cut_{k}": f"map@{k}" for k in (5, 10, 100)},
    **{f"recall_{k}": f"recall@{k}" for k in (5, 10, 20, 100, 1000)},
    **{f"P_{k}": f"precision@{k}" for k in (5, 10, 20, 100, 1000)},
    **{f"success_{k}": f"hit@{k}" for k in (1, 5, 10)},
}


def ours(name: str, judged: dict[str, int], scores: dict[str, float]) -> float:
    """Our value for one query, the run ordered as trec_eval orders it: by score, ties by document name, descending."""
    metric = parse_metric(name)
    ranked = sorted(scores, key=lambda doc: (scores[doc], doc), reverse=True)
    gold = tuple(Evidence((Span(doc, 0, 1),), float(grade), whole=True) for doc, grade in judged.items() if grade > 0)
    return MEASURES[metric.measure](Ranking([Passage(doc, 0, 1) for doc in ranked], Items(gold, 0.5, True)), metric.k)


def test_trec_evals_own_output(shared: Callable[[str], Path]) -> None:
    """All queries and their mean, as trec_eval printed them, to 4 decimals."""
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
        if name not in OURS:
            continue
        asked = list(run) if query == "all" else [query]
        values = [ours(OURS[name], qrels[q], run[q]) for q in asked]
        assert np.mean(values) == pytest.approx(float(expected), abs=5.1e-5), (name, query)
        compared += 1
    assert compared > 40


def test_random_runs_against_pytrec_eval() -> None:
    """Graded judgments, ties, unjudged documents, queries that find nothing."""
    rng = np.random.default_rng(4)
    documents = [f"d{n}" for n in range(40)]
    qrels: Qrels = {}
    run: Run = {}
    for query in map(str, range(60)):
        qrels[query] = {
            doc: int(grade) for doc, grade in zip(documents, rng.integers(0, 4, 40), strict=True) if rng.random() < 0.3
        }
        qrels[query][documents[0]] = 2
        retrieved = rng.choice(40, rng.integers(1, 40), replace=False)
        run[query] = {documents[n]: float(np.round(rng.random(), 1)) for n in retrieved}
    theirs = pytrec_eval.RelevanceEvaluator(
        qrels, {"map", "recip_rank", "ndcg", "ndcg_cut", "map_cut", "recall", "P", "success"}
    ).evaluate(run)
    for query, values in theirs.items():
        for name, expected in values.items():
            if name in OURS:
                assert ours(OURS[name], qrels[query], run[query]) == pytest.approx(expected, abs=1e-6), (query, name)
