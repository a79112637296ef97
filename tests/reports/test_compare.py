"""Comparisons worked by hand, and the words they may use."""

import csv
import dataclasses
import io
import json
import math
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import Compare, ConfigError, Experiment, Launch, Trial
from harness.chunkers import Fixed
from harness.results import Judged, TrialResult
from harness.retrievers import BM25
from harness.stats import Floats
from judges import HeuristicPrecision
from reports import Comparison, Row, columns, compare, scores_frame
from reports.answer import answer
from reports.compare import losses_at
from reports.figure import recall_over_budget
from reports.tables import as_csv, as_json, html, markdown, mean_in_bounds

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


def judged_launch(*results: TrialResult) -> Launch:
    base = Trial("d", Fixed(), BM25(), metrics=("recall@5",), judges=(HeuristicPrecision(),))
    return Launch("l", Experiment("n", base, compare=Compare({"chunker": "base"})), results)


HALF = [n % 2 for n in range(QUERIES)]


def noisy(values: Sequence[float], scale: float = 0.3) -> list[float]:
    """The values with the same noise each time."""
    return (np.array(values) + np.random.default_rng(0).normal(0, scale, len(values))).tolist()


def test_words_follow_the_interval() -> None:
    """Always better by 0.2; always worse; the same up to noise."""
    better = [0.2 + 0.8 * value for value in HALF]
    worse = [0.5 * value for value in HALF]
    noise = noisy(HALF)
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


def test_chunkers_are_compared_at_a_budget_even_if_none_is_asked_for() -> None:
    """recall@1000t is scored for every trial; where nothing but k differs, the first metric asked for will do."""
    base = Trial("d", Fixed(), BM25(), metrics=("recall@5",))
    made = [result("base", HALF), result("x", HALF, size=900)]
    for one in made:
        one.scores["recall@1000t"] = np.array(HALF)  # type: ignore[index]
    experiment = Experiment("n", base, compare=Compare({"chunker": "base"}))
    assert compare(Launch("l", experiment, made)).metric == "recall@1000t"
    same = [made[0], dataclasses.replace(made[1], params={**made[0].params, "selector.k": "9"})]
    assert compare(Launch("l", experiment, same)).metric == "recall@5"


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


def test_other_trials_move_only_what_speaks_of_all() -> None:
    """Resamples follow from the queries and the metric alone; what holds for all at once widens with their number."""
    noise = noisy(HALF)
    few = compare(launch(result("base", HALF), result("x", noise))).rows[1]
    many = compare(launch(result("base", HALF), result("w", HALF[::-1]), result("x", noise))).rows[2]
    wanted = pytest.approx((many.low, many.high, many.alone_low, many.alone_high))
    assert (few.low, few.high, few.alone_low, few.alone_high) == wanted
    assert few.p_alone == many.p_alone == few.p <= many.p
    assert many.difference_low < few.difference_low < few.difference < few.difference_high < many.difference_high


def test_a_margin_tells_what_matters() -> None:
    """Better by 0.1: more than 0.02, less than 0.5; the same trial is less than any margin away."""
    better = noisy([0.2 + 0.8 * value for value in HALF], 0.01)
    made = launch(result("base", HALF), result("b", better), result("twin", HALF))
    assert [row.matters for row in compare(made).rows] == ["", "", ""]
    assert [row.matters for row in compare(made, margin=0.02).rows] == ["", "yes", "no"]
    assert [row.matters for row in compare(made, margin=0.5).rows] == ["", "no", "no"]
    told = "compared with the margin of 0.02, the difference is larger for b; smaller for twin"
    assert told in str(compare(made, margin=0.02))


def test_cannot_tell_says_what_would() -> None:
    """A noisy trial comes with the queries that would show a difference of the effect sought; half the effect, four
    times the queries."""
    noise = noisy(HALF)
    made = launch(result("base", HALF), result("n", noise))
    needed = compare(made, effect=0.1).rows[1].needed
    assert needed > QUERIES
    assert compare(made, effect=0.05).rows[1].needed == pytest.approx(4 * needed, abs=4)
    assert np.isnan(compare(made).rows[0].needed)


def test_the_best_of_the_grid() -> None:
    """One trial stands apart; its twin cannot be told from it, and both are named."""
    better = [0.2 + 0.8 * value for value in HALF]
    best = compare(launch(result("base", HALF), result("b", better), result("twin", better))).best
    assert (best.name, best.mean, best.not_separable) == ("b", pytest.approx(0.6), ["b", "twin"])
    assert best.corrected == pytest.approx(0.6)
    assert best.low < best.corrected < best.high


def test_clusters_may_be_queries() -> None:
    """Then the claim is about further questions on the same documents, and is told as such."""
    noise = noisy(HALF)
    made = launch(result("base", HALF), result("n", noise))
    found = compare(made, clusters="queries")
    assert (found.clusters, found.clusters_by) == (40, "queries")
    assert "further questions on the same documents" in str(found)
    assert "20 clusters, the documents they are about" in str(compare(made))


def test_four_documents_tell_nothing() -> None:
    """Fewer than five clusters: no interval, no word but `cannot tell`, and no ranking is claimed."""
    few = [dataclasses.replace(result(name, values), clusters=[f"d{n % 4}" for n in range(QUERIES)])
           for name, values in (("base", HALF), ("b", [0.2 + 0.8 * v for v in HALF]))]  # fmt: skip
    row = compare(launch(*few)).rows[1]
    assert (row.verdict, np.isnan(row.low), np.isnan(row.difference_low), np.isnan(row.p)) == (
        "cannot tell",
        True,
        True,
        True,
    )


def test_few_documents_get_a_reason_instead_of_an_interval() -> None:
    """In the cell, in words; five documents have too few sign patterns for p .05, six have enough."""
    scores = {"base": [0.5 * value for value in HALF], "b": [0.5 * value + 0.1 for value in HALF]}

    def among(documents: int) -> Comparison:
        labels = [f"d{n % documents}" for n in range(QUERIES)]
        made = [dataclasses.replace(result(name, values), clusters=labels) for name, values in scores.items()]
        return compare(launch(*made))

    four, five, six = (among(documents) for documents in (4, 5, 6))
    assert [found.rows[1].no_interval for found in (four, five, six)] == ["too few clusters", "too few clusters", ""]
    assert [found.rows[1].verdict for found in (four, five, six)] == ["cannot tell", "cannot tell", "better"]
    assert (math.isnan(four.rows[1].low), math.isnan(five.rows[1].low)) == (True, False)
    assert str(four).count("too few clusters") == 3  # both means and the difference
    assert str(five).count("too few clusters") == 1
    assert "5 clusters of queries are too few for any difference to reach p 0.05" in str(five)


@given(st.integers(0, 10_000), st.integers(5, 14), st.sampled_from(["binary", "thirds", "skewed"]))
@settings(max_examples=60, deadline=None)
def test_no_word_stands_beside_an_interval_that_crosses_zero(seed: int, clusters: int, kind: str) -> None:
    """In the table and in the sentence: few documents, unlike numbers of questions, ties, skew, six trials."""
    rng = np.random.default_rng(seed)
    labels = [f"d{n}" for n in (*range(clusters), *rng.integers(0, clusters, QUERIES - clusters))]
    made = []
    for trial in range(6):
        chance = rng.random() ** 2 if trial else 0.3
        values = rng.random(QUERIES) < chance
        drawn = {
            "binary": values * 1.0,
            "thirds": values * rng.integers(0, 4, QUERIES) / 3,
            "skewed": values * rng.random(QUERIES) ** 6,
        }
        made.append(dataclasses.replace(result(f"t{trial}" if trial else "base", drawn[kind]), clusters=labels))
    found = compare(launch(*made))
    for row in found.rows[1:]:
        word = "better" if row.difference_low > 0 else "worse" if row.difference_high < 0 else "cannot tell"
        assert (row.verdict, row.p <= 0.05) == (word, word != "cannot tell") or math.isnan(row.p)
        assert (row.p_alone <= 0.05) == (row.alone_low > 0 or row.alone_high < 0) or math.isnan(row.p_alone)
        assert bool(row.no_interval) == math.isnan(row.difference_low)
    told = re.search(r"is better than .* \((\S+) … (\S+)\)", answer(found))
    assert told is None or float(told[1]) >= 0


def test_more_than_a_thousand_documents() -> None:
    """1,406 clusters, as ArguAna has: compared without a word of overflow."""
    values = np.random.default_rng(0).random((2, 1406))
    names = [str(n) for n in range(1406)]
    made = [
        TrialResult(n, n, {"chunker": n}, names, names, {"recall@5": v}, [["found"]] * 1406, {"context_tokens": 1.0})
        for n, v in zip(("base", "x"), values, strict=True)
    ]
    found = compare(launch(*made))
    assert (found.clusters, found.rows[1].no_interval) == (1406, "")
    assert found.rows[1].difference_low < found.rows[1].difference < found.rows[1].difference_high


def test_tables_for_machines() -> None:
    """CSV and a data frame with a row per trial, and all scores in one tidy frame."""
    made = launch(result("base", HALF), result("x", HALF[::-1]))
    found = compare(made)
    assert list(csv.DictReader(io.StringIO(as_csv(found))))[1]["name"] == "x"
    assert found.frame().loc[0, "lost_not_retrieved"] == 10
    tidy = scores_frame(made)
    assert list(tidy.columns) == ["trial", "query", "cluster", "metric", "value", "failed"]
    assert len(tidy) == 2 * 3 * QUERIES
    assert tidy[(tidy.trial == "x") & (tidy.metric == "recall@5")].value.mean() == 0.5


def test_every_metric_and_fact_for_machines() -> None:
    """Beside the comparison, at full precision; or only those that are named."""
    made = launch(result("base", [1 / 3] * QUERIES), result("x", HALF))
    found, names = compare(made), columns.every(made)
    assert names[:2] == ["recall@5", "recall@100t"]
    assert {"recall@200t", "context_tokens"} <= set(names)
    rows = list(csv.DictReader(io.StringIO(as_csv(found, columns.beside(made, names)))))
    assert float(rows[0]["recall@200t"]) == 1 / 3
    assert (list(rows[0]).count("context_tokens"), rows[1]["recall@100t"]) == (1, "0.5")
    told = json.loads(as_json(found, columns.beside(made, ["recall@200t", "context_tokens"])))["rows"][0]
    assert told["values"] == {"recall@200t": 1 / 3, "context_tokens": 100.0}
    assert told["mean"] == told["values"]["recall@200t"]


def test_fewer_passages_than_precision_divides_by() -> None:
    """At most 3 of 10: said where precision@10 is compared, for the trials it holds for."""
    made = [result("base", HALF), result("x", HALF), result("y", HALF)]
    limits = ({"selector.top_k.k": "20"}, {"selector.top_k.k": "3"}, {"retriever.depth": "5", "selector.mmr.k": "null"})
    for one, limit in zip(made, limits, strict=True):
        one.params.update(limit)  # type: ignore[attr-defined]
        one.scores["precision@10"] = np.array(HALF) / 10  # type: ignore[index]
    warnings = compare(launch(*made, on="precision@10")).warnings
    assert "precision@10 divides by 10, and at most 3 passages are kept: it is at most 0.300 for x" in warnings
    assert "precision@10 divides by 10, and at most 5 passages are kept: it is at most 0.500 for y" in warnings
    assert not any("divides by" in warning for warning in compare(launch(*made)).warnings)


def test_missing_judgments_never_make_a_trial_look_better() -> None:
    """Values known, then five of them lost: bounds widen, p does not fall, and no chance to be best is gained."""
    better = np.array(noisy([0.2 + 0.8 * value for value in HALF], 0.05))
    lost = np.where(np.arange(QUERIES) % 8 == 0, np.nan, better)

    def compared(values: Floats) -> Row:
        made = [result("base", HALF), result("x", HALF)]
        gone = np.isnan(values)
        for one, own in zip(made, (np.array(HALF, float), values), strict=True):
            low, high = (np.where(np.isnan(own), bound, own) for bound in (0.0, 1.0))
            one.judged["heuristic_precision"] = Judged("j", own, low, high, max_failed=0.5)  # type: ignore[index]
        assert gone.sum() in (0, 5)
        return compare(judged_launch(*made), on="heuristic_precision").rows[1]

    whole, short = compared(better), compared(lost)
    assert (whole.verdict, whole.complete, short.complete) == ("better", 40, 35)
    assert short.low < whole.low < whole.high < short.high
    assert short.least < whole.least == whole.mean == whole.most < short.most
    assert f"{short.mean:.3f} [{short.least:.3f} … {short.most:.3f}]" == mean_in_bounds(short)
    # With so many missing, nothing bounds the difference.
    assert np.isnan(short.difference_low) or short.difference_low < whole.difference_low
    assert short.p >= whole.p
    assert short.p_best <= whole.p_best
