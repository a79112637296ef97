"""Comparisons worked by hand, and the words they may use."""

import json
from collections.abc import Sequence

import numpy as np
import pytest

from harness import Compare, ConfigError, Experiment, Launch, Trial
from harness.chunkers import Fixed
from harness.results import TrialResult
from harness.retrievers import BM25
from reports import compare
from reports.compare import losses_at
from reports.figure import recall_over_budget
from reports.tables import as_json, html, markdown

QUERIES = 40


def result(name: str, values: Sequence[float], size: int = 100) -> TrialResult:
    scores = {"recall@5": np.array(values), "recall@100t": np.array(values), "recall@200t": np.array(values)}
    clusters = [f"doc{n % 20}" for n in range(QUERIES)]
    params = {"chunker": name, "chunker.size": str(size)}
    efficiency = {"context_tokens": 100.0}
    fates = [["found"]] * 30 + [["not_retrieved"]] * 10
    return TrialResult(name, name, params, [str(n) for n in range(QUERIES)], clusters, scores, fates, efficiency)


def launch(*results: TrialResult, on: str | None = "recall@5") -> Launch:
    base = Trial("d", Fixed(), BM25(), metrics=("recall@5", "recall@100t"))
    return Launch(
        "l", Experiment("n", base, question="Which <one>?", compare=Compare({"chunker": "base"}, on)), results
    )


HALF = [n % 2 for n in range(QUERIES)]
RNG = np.random.default_rng(0)


def test_words_follow_the_interval() -> None:
    """Always better by 0.2; always worse; the same up to noise."""
    better = [0.2 + 0.8 * value for value in HALF]
    worse = [0.5 * value for value in HALF]
    noise = [value + RNG.normal() * 0.3 for value in HALF]
    found = compare(launch(result("base", HALF), result("b", better), result("w", worse), result("n", noise)))
    assert [row.verdict for row in found.rows] == ["baseline", "better", "worse", "cannot tell"]
    assert found.rows[0].mean == 0.5
    assert found.rows[1].difference == pytest.approx(0.1)
    assert (found.queries, found.clusters, found.baseline) == (40, 20, "base")


def test_queries_without_a_value_are_left_out_and_counted() -> None:
    """NaN, for want of evidence or because the metric does not apply; the two are told apart."""
    values = [float("nan"), *[1.0] * 39]
    found = compare(launch(result("base", values)))
    assert (found.rows[0].mean, found.queries, found.unanswerable, found.unmeasured) == (1.0, 39, 0, 1)


def test_the_default_metric_is_at_a_token_budget() -> None:
    """At equal k, chunk size and context size are confounded; asked for all the same, it is said."""
    results = result("base", HALF), result("x", HALF, size=900)
    assert compare(launch(*results, on=None)).metric == "recall@100t"
    assert any("contexts of different size" in warning for warning in compare(launch(*results)).warnings)


def test_the_first_trial_is_the_baseline_where_none_is_named() -> None:
    """And its name is always shown."""
    made = launch(result("x", HALF), result("base", HALF))
    assert compare(made).baseline == "base"
    assert compare(made, baseline={"chunker.size": 100}).baseline == "x"


def test_faults() -> None:
    """An unknown param, an unknown metric."""
    with pytest.raises(ConfigError, match="no param 'chunkr'. Did you mean 'chunker'"):
        compare(launch(result("base", HALF)), baseline={"chunkr": "x"})
    with pytest.raises(ConfigError, match="'recall@6' was not scored. Did you mean 'recall@5'"):
        compare(launch(result("base", HALF)), on="recall@6")


def test_renderings() -> None:
    """Text, Markdown, HTML, JSON and picture; whatever comes from a file is escaped."""
    found = compare(launch(result("base", HALF), result("<b>|x", HALF)))
    assert "<b>|x" in str(found)
    assert "<b>\\|x" in markdown(found)
    assert "&lt;b&gt;|x" in html(found) == found._repr_html_()
    assert json.loads(as_json(found))["rows"][0]["name"] == "base"
    assert recall_over_budget([result("base", HALF)], "Which?").startswith(b"\x89PNG")


def test_losses_at_the_cutoff() -> None:
    """30 of 40 items were selected; half of the queries find theirs within the cutoff: 10 lie beyond it."""
    values = [float(n < 20) for n in range(QUERIES)]
    found = losses_at(result("x", values), "recall@100t")
    assert found == {"found": 20, "not_retrieved": 10, "past 100 tokens": 10}
    assert losses_at(result("x", values), "recall@5")["below rank 5"] == 10
    assert losses_at(result("x", values), "mrr") == {"found": 30, "not_retrieved": 10}


def test_other_trials_do_not_move_an_interval() -> None:
    """The resamples follow from the queries and the metric alone."""
    noise = [value + RNG.normal() * 0.3 for value in HALF]
    few = compare(launch(result("base", HALF), result("x", noise)))
    many = compare(launch(result("base", HALF), result("w", HALF[::-1]), result("x", noise)))
    assert few.rows[1] == many.rows[2]
