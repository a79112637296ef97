"""Comparisons computed by hand, and their verdicts."""

import csv
import dataclasses
import io
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import Compare, ConfigError, Experiment, Launch, Trial, run
from harness.components.chunkers import Fixed
from harness.components.retrievers import BM25
from harness.evaluation.results import Judged, TrialResult
from harness.evaluation.stats import Floats
from harness.experiment.part import part_of
from harness.experiment.yaml_file import read_experiment
from judges import HeuristicPrecision, HeuristicRecall
from reports import Comparison, Row, columns, compare, comparison_columns, launch_report, scores_frame
from reports.answer import answer
from reports.compare import losses_at
from reports.comparison import as_csv, as_json, html, markdown, text
from reports.comparison_columns import mean_in_bounds
from reports.differences import _matters, _verdict, _within
from reports.page.figures import budget_curves

QUERIES = 40


def result(name: str, values: Sequence[float], size: int = 100) -> TrialResult:
    scores = {"recall@5": np.array(values), "recall@100t": np.array(values), "recall@200t": np.array(values)}
    clusters = [f"doc{n % 20}" for n in range(QUERIES)]
    params = {"chunker": name, "chunker.size": str(size)}
    efficiency = {"context_tokens": 100.0}
    evidence_outcomes = [["found"]] * 30 + [["not_retrieved"]] * 10
    return TrialResult(
        name, name, params, [str(n) for n in range(QUERIES)], clusters, scores, evidence_outcomes, efficiency
    )


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


def test_verdicts_follow_the_interval() -> None:
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
    """NaN, because there is no evidence or because the metric does not apply; the two are counted separately."""
    values = [float("nan"), *[1.0] * 39]
    found = compare(launch(result("base", values)))
    assert (found.rows[0].mean, found.queries, found.unanswerable, found.unmeasured) == (1.0, 39, 0, 1)


def test_the_default_metric_is_at_a_token_budget() -> None:
    """At equal k, chunk size and context size are confounded; a comparison at equal k has a warning."""
    results = result("base", HALF), result("x", HALF, size=900)
    assert compare(launch(*results, on=None)).metric == "recall@100t"
    message = "contexts of different size"
    assert any(message in warning for warning in compare(launch(*results)).warnings)
    assert not any(message in warning for warning in compare(launch(*results, on=None)).warnings)
    assert not any(message in warning for warning in compare(launch(results[0])).warnings)


def test_chunkers_are_compared_at_a_budget_even_if_none_is_requested() -> None:
    """recall@1000t is scored for every trial; if only k differs, the first requested metric is used."""
    base = Trial("d", Fixed(), BM25(), metrics=("recall@5",))
    made = [result("base", HALF), result("x", HALF, size=900)]
    for one in made:
        one.scores["recall@1000t"] = np.array(HALF)  # type: ignore[index]
    experiment = Experiment("n", base, compare=Compare({"chunker": "base"}))
    assert compare(Launch("l", experiment, made)).metric == "recall@1000t"
    same = [made[0], dataclasses.replace(made[1], params={**made[0].params, "selector.k": "9"})]
    assert compare(Launch("l", experiment, same)).metric == "recall@5"


def test_the_first_trial_is_the_default_baseline() -> None:
    """Its name is always shown."""
    made = launch(result("x", HALF), result("base", HALF))
    assert compare(made).baseline == "base"
    assert compare(made, baseline={}).baseline == "base"  # none on the command line
    assert compare(made, baseline={"chunker.size": 100}).baseline == "x"


def test_a_baseline_of_two_trials() -> None:
    """The first of them, and a note says so; no note if nothing was asked for, or only one trial has it."""
    made = launch(result("x", HALF), result("base", HALF), on="recall@100t")
    note = "2 trials have chunker.size: 100; the first of them is the baseline"
    assert compare(made, baseline={"chunker.size": 100}).warnings == [note]
    assert not compare(made).warnings
    unnamed = dataclasses.replace(made.experiment, compare=Compare(on="recall@100t"))
    assert not compare(dataclasses.replace(made, experiment=unnamed)).warnings


def test_faults() -> None:
    """An unknown param, an unknown metric."""
    with pytest.raises(ConfigError, match="no param 'chunkr'. Did you mean 'chunker'"):
        compare(launch(result("base", HALF)), baseline={"chunkr": "x"})
    with pytest.raises(ConfigError, match="'recall@6' was not scored. Did you mean 'recall@5'"):
        compare(launch(result("base", HALF)), on="recall@6")


def test_renderings() -> None:
    """Text, Markdown, HTML, JSON and chart; names from files are escaped."""
    found = compare(launch(result("base", HALF), result("<b>|x", HALF)))
    assert "<b>|x" in str(found)
    assert "<b>\\|x" in markdown(found)
    assert "&lt;b&gt;|x" in html(found)
    assert html(found) in found._repr_html_()
    assert json.loads(as_json(found))["rows"][0]["name"] == "base"
    assert budget_curves([result("base", HALF)]).startswith("<svg")


def test_losses_at_the_cutoff() -> None:
    """30 of 40 items were selected; half of the queries find theirs within the cutoff, so 10 are beyond it."""
    values = [float(n < 20) for n in range(QUERIES)]
    found = losses_at(result("x", values), "recall@100t")
    assert found == {"found": 20, "not_retrieved": 10, "past 100 tokens": 10}
    assert losses_at(result("x", values), "recall@5")["below rank 5"] == 10
    uncut = result("x", values)
    assert losses_at(uncut, "mrr") == {"found": 30, "not_retrieved": 10}
    uncut.scores["recall"] = np.array(values)  # type: ignore[index]
    assert losses_at(uncut, "mrr") == {"found": 30, "not_retrieved": 10}
    many = dataclasses.replace(result("x", [0.29, *[math.nan] * 39]), evidence_outcomes=[["found"] * 100, *[[]] * 39])
    assert losses_at(many, "recall@5") == {"found": 29, "below rank 5": 71}  # 0.29 * 100 is a little less than 29
    none = dataclasses.replace(result("x", [0.0] * 40), evidence_outcomes=[["split"]] * 40)
    assert losses_at(none, "recall@5") == {"split": 40, "found": 0, "below rank 5": 0}


def test_other_trials_affect_only_simultaneous_intervals() -> None:
    """Resamples depend on the queries and the metric only; simultaneous intervals widen with the number of trials."""
    noise = noisy(HALF)
    few = compare(launch(result("base", HALF), result("x", noise))).rows[1]
    many = compare(launch(result("base", HALF), result("w", HALF[::-1]), result("x", noise))).rows[2]
    wanted = pytest.approx((many.low, many.high, many.alone_low, many.alone_high))
    assert (few.low, few.high, few.alone_low, few.alone_high) == wanted
    assert few.p_alone == many.p_alone == few.p <= many.p
    assert many.difference_low < few.difference_low < few.difference < few.difference_high < many.difference_high


def test_differences_are_compared_with_a_margin() -> None:
    """Better by 0.1: more than 0.02, less than 0.5; an identical trial is within any margin."""
    better = noisy([0.2 + 0.8 * value for value in HALF], 0.01)
    made = launch(result("base", HALF), result("b", better), result("copy", HALF))
    assert [row.matters for row in compare(made).rows] == ["", "", ""]
    assert [row.matters for row in compare(made, margin=0.02).rows] == ["", "yes", "no"]
    assert [row.matters for row in compare(made, margin=0.5).rows] == ["", "no", "no"]
    unsure = launch(result("base", HALF), result("n", noisy(HALF)))
    assert compare(unsure, margin=0.01).rows[1].matters == "cannot tell"
    message = "compared with the margin of 0.02, the difference is larger for b; smaller for copy"
    assert message in str(compare(made, margin=0.02))


def test_cannot_tell_has_the_queries_needed() -> None:
    """For a noisy trial, the queries that would detect a difference of `effect`; half the effect, four times the
    queries."""
    noise = noisy(HALF)
    made = launch(result("base", HALF), result("n", noise))
    needed = compare(made, effect=0.1).rows[1].needed
    assert needed > QUERIES
    assert compare(made, effect=0.05).rows[1].needed == pytest.approx(4 * needed, abs=4)
    assert np.isnan(compare(made).rows[0].needed)


def test_the_best_of_the_grid() -> None:
    """One trial is better than the baseline; an identical one cannot be separated from it, and both are named."""
    better = [0.2 + 0.8 * value for value in HALF]
    best = compare(launch(result("base", HALF), result("b", better), result("copy", better))).best
    assert (best.name, best.mean, best.not_separable) == ("b", pytest.approx(0.6), ["b", "copy"])
    assert best.corrected == pytest.approx(0.6)
    assert best.low < best.corrected < best.high


def test_clusters_may_be_queries() -> None:
    """The results then apply to further questions on the same documents, and a note says so."""
    noise = noisy(HALF)
    made = launch(result("base", HALF), result("n", noise))
    found = compare(made, clusters="queries")
    assert (found.clusters, found.clusters_by) == (40, "queries")
    assert "further questions on the same documents" in str(found)
    assert "20 clusters by document" in str(compare(made))


def test_four_documents_are_too_few() -> None:
    """Fewer than five clusters: no interval, no verdict but `cannot tell`, and no ranking."""
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
    """The cell says why; five documents have too few sign patterns for p .05, six have enough."""
    scores = {"base": [0.5 * value for value in HALF], "b": [0.5 * value + 0.1 for value in HALF]}

    def among(documents: int) -> Comparison:
        labels = [f"d{n % documents}" for n in range(QUERIES)]
        made = [dataclasses.replace(result(name, values), clusters=labels) for name, values in scores.items()]
        return compare(launch(*made))

    four, five, six = (among(documents) for documents in (4, 5, 6))
    assert [found.rows[1].no_interval for found in (four, five, six)] == ["too few clusters", "too few clusters", ""]
    assert [found.rows[1].verdict for found in (four, five, six)] == ["cannot tell", "cannot tell", "better"]
    assert (math.isnan(four.rows[1].low), math.isnan(five.rows[1].low)) == (True, False)
    assert "no intervals: 4 clusters of queries, at least 5 are needed" in four.warnings
    assert "only 16 sign patterns; queries about 6 documents would be enough" in "".join(five.warnings)
    for documents in (6, 19, 20):
        rough = f"only {documents} clusters of queries: the intervals are approximate"
        assert (rough in among(documents).warnings) == (documents < 20)
    assert str(four).count("too few clusters") == 3  # both means and the difference
    assert str(five).count("too few clusters") == 1
    assert "5 clusters of queries are too few for any difference to reach p 0.05" in str(five)


@given(st.integers(0, 10_000), st.integers(5, 14), st.sampled_from(["binary", "thirds", "skewed"]))
@settings(max_examples=20, deadline=None)
def test_no_verdict_beside_an_interval_that_crosses_zero(seed: int, clusters: int, kind: str) -> None:
    """In the table and in the answer: few documents of unequal numbers of queries, ties, skew, six trials."""
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
    output = re.search(r"is better than .* \(95 % CI (\S+) … ([^,\s]+),", answer(found))
    assert output is None or float(output[1]) >= 0


def test_more_than_a_thousand_documents() -> None:
    """1,406 clusters, as in ArguAna: no overflow."""
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
    """With the comparison, at full precision; or only those that are named."""
    made = launch(result("base", [1 / 3] * QUERIES), result("x", HALF))
    found, names = compare(made), columns.every(made)
    assert names[:2] == ["recall@5", "recall@100t"]
    assert {"recall@200t", "context_tokens"} <= set(names)
    rows = list(csv.DictReader(io.StringIO(as_csv(found, columns.trial_values(made, names)))))
    assert float(rows[0]["recall@200t"]) == 1 / 3
    assert (list(rows[0]).count("context_tokens"), rows[1]["recall@100t"]) == (1, "0.5")
    output = json.loads(as_json(found, columns.trial_values(made, ["recall@200t", "context_tokens"])))["rows"][0]
    assert output["values"] == {"recall@200t": 1 / 3, "context_tokens": 100.0}
    assert output["mean"] == output["values"]["recall@200t"]


def test_fewer_passages_than_precision_divides_by() -> None:
    """At most 3 of 10: a warning if precision@10 is compared, for the trials concerned."""
    made = [result("base", HALF), result("x", HALF), result("y", HALF)]
    limits = ({"selector.top_k.k": "20"}, {"selector.top_k.k": "3"}, {"retriever.depth": "5", "selector.mmr.k": "null"})
    for one, limit in zip(made, limits, strict=True):
        one.params.update(limit)  # type: ignore[attr-defined]
        one.scores["precision@10"] = np.array(HALF) / 10  # type: ignore[index]
    warnings = compare(launch(*made, on="precision@10")).warnings
    assert "precision@10 divides by 10, but at most 3 passages are selected: its maximum is 0.300 for x" in warnings
    assert "precision@10 divides by 10, but at most 5 passages are selected: its maximum is 0.500 for y" in warnings
    assert sum("divides by" in warning for warning in warnings) == 2
    assert not any("divides by" in warning for warning in compare(launch(*made)).warnings)
    # The smallest limit counts; other settings do not, and a limit of 10 has no effect.
    free = [{"chunker.k": "3", "selector.mmr.depth": "2"}, {"selector.top_k.k": "10"}, {"retriever.depth": "50"}]
    for one, limit in zip(made, free, strict=True):
        one.params.clear()  # type: ignore[attr-defined]
        one.params.update(limit, chunker=one.name)  # type: ignore[attr-defined]
    made[2].params["selector.top_k.k"] = "4"  # type: ignore[index]
    warnings = compare(launch(*made, on="precision@10")).warnings
    assert [warning.split(":")[1] for warning in warnings if "divides by" in warning] == [
        " its maximum is 0.400 for y",
    ]


def test_fewer_passages_than_a_judge_divides_by() -> None:
    """Precision at 10 of three passages is at most 0.3; recall is not divided by k."""
    one = between("base", HALF, HALF)
    one = dataclasses.replace(
        one,
        params={**one.params, "selector.top_k.k": "3"},
        judged=dict.fromkeys(("heuristic_precision", "heuristic_recall"), one.judged["heuristic_precision"]),
    )
    base = Trial("d", Fixed(), BM25(), metrics=("recall@5",), judges=(HeuristicPrecision(k=10), HeuristicRecall(k=10)))
    made = Launch("l", Experiment("n", base, compare=Compare({"chunker": "base"})), [one])
    message = "heuristic_precision divides by 10, but at most 3 passages are selected: its maximum is 0.300 for base"
    assert message in compare(made, on="heuristic_precision").warnings
    assert not any("divides by" in warning for warning in compare(made, on="heuristic_recall").warnings)


def test_missing_judgments_never_make_a_trial_look_better() -> None:
    """All values known, then five missing: bounds widen, p does not fall, and P(best) does not rise."""
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
    assert short.mean_min < whole.mean_min == whole.mean == whole.mean_max < short.mean_max
    assert f"{short.mean:.3f} [{short.mean_min:.3f} … {short.mean_max:.3f}]" == mean_in_bounds(short)
    # With so many missing, nothing bounds the difference.
    assert np.isnan(short.difference_low) or short.difference_low < whole.difference_low
    assert short.p >= whole.p
    assert short.p_best <= whole.p_best


def between(name: str, low: Sequence[float], high: Sequence[float], max_failed: float = 1.0) -> TrialResult:
    """A trial judged on every query; if the bounds differ, the judgment is missing."""
    one, least, most = result(name, HALF), np.array(low, float), np.array(high, float)
    judged = Judged("j", np.where(least == most, least, np.nan), least, most, max_failed)
    return dataclasses.replace(one, judged={"heuristic_precision": judged})


def rows(*results: TrialResult, **given: float) -> Sequence[Row]:
    return compare(judged_launch(*results), on="heuristic_precision", **given).rows  # type: ignore[arg-type]


def with_one(values: Sequence[float], at: int, value: float) -> list[float]:
    return [value if n == at else old for n, old in enumerate(values)]


QUARTER, STEPS = [0.25] * QUERIES, [0.5, 1.0] * 20


def test_missing_judgments_bound_the_difference_by_hand() -> None:
    """The baseline has 0.25 each, the trial 0.5 and 1 in turn; a judgment of each is missing, from 0 to 1.

    Sums from 9.75 to 10.75 and from 29 to 30 differ by 18.25 to 20.25. The interval reaches as far beyond the one as
    beyond the other. Means are over the 39 queries that have a value, their difference over the 38 that have both.
    """
    base = between("base", with_one(QUARTER, 0, 0.0), with_one(QUARTER, 0, 1.0))
    trial = between("x", with_one(STEPS, 1, 0.0), with_one(STEPS, 1, 1.0))
    one, two = rows(base, trial)
    assert (one.mean_min, one.mean, one.mean_max) == (9.75 / 40, 0.25, 10.75 / 40)
    assert (two.mean_min, two.mean, two.mean_max) == (29 / 40, pytest.approx(29 / 39), 30 / 40)
    assert (one.complete, two.complete, two.difference, two.verdict) == (39, 39, 0.5, "better")
    assert two.difference_low + two.difference_high == pytest.approx((18.25 + 20.25) / 40)
    assert two.alone_low + two.alone_high == pytest.approx((18.25 + 20.25) / 40)
    assert two.difference_low == two.alone_low < 18.25 / 40
    assert 20.25 / 40 < two.alone_high == two.difference_high


def test_a_difference_is_symmetric() -> None:
    """With the two trials exchanged, bounds change their signs and nothing else changes."""
    noise = np.clip(noisy([0.5] * QUERIES), 0, 1)
    base = between("base", with_one(QUARTER, 0, 0.0), with_one(QUARTER, 0, 0.5))
    trial = between("x", with_one(noise.tolist(), 3, 0.1), with_one(noise.tolist(), 3, 0.7))
    one = rows(base, trial)[1]
    two = compare(judged_launch(base, trial), on="heuristic_precision", baseline={"chunker": "x"}).rows[0]
    assert (two.difference_low, two.difference_high) == pytest.approx((-one.difference_high, -one.difference_low))
    assert (two.alone_low, two.alone_high) == pytest.approx((-one.alone_high, -one.alone_low))
    assert two.difference == pytest.approx(-one.difference)
    assert (one.verdict, two.verdict, one.p) == ("better", "worse", two.p)


def test_an_interval_reaches_from_the_worst_case_to_the_best() -> None:
    """Only bounds of 0.25 and 0.75 on every query: the mean is somewhere between them."""
    row = rows(between("base", QUARTER, [0.75] * QUERIES))[0]
    assert (row.mean_min, row.low, row.high, row.mean_max) == (0.25, 0.25, 0.75, 0.75)


def test_a_trial_that_may_be_better_is_not_the_best_but_may_be() -> None:
    """0.5 for certain against 0.4 to 1: the first is chosen, the second not excluded; 0.4 to 0.41 is excluded."""
    base = between("base", [0.5] * QUERIES, [0.5] * QUERIES)
    for most, names in ((1.0, ["base", "x"]), (0.41, ["base"])):
        trial = between("x", [0.4] * QUERIES, [most] * QUERIES)
        best = compare(judged_launch(base, trial), on="heuristic_precision").best
        assert (best.name, best.corrected, best.not_separable) == ("base", 0.5, names)
    low = compare(judged_launch(dataclasses.replace(trial, params=base.params)), on="heuristic_precision").best
    assert (low.low, low.corrected, low.high) == pytest.approx((0.4, 0.4, 0.41))


def test_a_withheld_trial_is_not_compared_and_does_not_affect_others() -> None:
    """One judgment of 40 missing if none may be: no mean, no difference, no verdict, and not excluded as the best."""
    base = between("base", QUARTER, QUARTER)
    noise = noisy(QUARTER, 0.05)
    trial = between("x", noise, noise)
    lacking = between("w", with_one(QUARTER, 0, 0.0), with_one(QUARTER, 0, 1.0), max_failed=0.0)
    without = rows(base, trial)[1]
    found = compare(judged_launch(base, lacking, trial), on="heuristic_precision")
    _, row, other = found.rows
    assert np.isnan([row.mean, row.difference, row.difference_low, row.difference_high, row.p, row.needed]).all()
    assert (row.verdict, row.no_interval, row.may_be_best) == ("cannot tell", "withheld", True)
    assert (row.mean_min, row.mean_max) == (9.75 / 40, 10.75 / 40)
    assert (other.p, other.difference_low) == (without.p, without.difference_low)
    assert "w: 39 of 40 queries have a value; the mean is withheld" in found.warnings
    found = compare(judged_launch(lacking, trial), on="heuristic_precision", baseline={"chunker": "w"})
    against = found.rows[1]
    assert (against.verdict, against.no_interval) == ("cannot tell", "withheld")
    assert np.isnan([against.difference, against.p]).all()
    assert against.mean == other.mean


def test_no_query_with_a_value_in_both_has_no_difference() -> None:
    """Each trial has values only for the half that the other lacks: both have a mean."""
    even, odd = ([float(n % 2 == side) for n in range(QUERIES)] for side in (0, 1))
    _, row = rows(between("base", [0.0] * QUERIES, even), between("x", [0.0] * QUERIES, odd))
    assert (row.mean, row.complete, row.verdict) == (0.0, 20, "cannot tell")
    assert np.isnan(row.difference)


def test_missing_judgments_are_reported() -> None:
    """With the number of queries that have a value; no note if all have one."""
    whole, short = between("base", QUARTER, QUARTER), between("x", with_one(QUARTER, 0, 0.0), QUARTER)
    output = compare(judged_launch(whole, short), on="heuristic_precision").warnings
    assert "x: 39 of 40 queries have a value; the mean is over those" in output
    assert "intervals and verdicts hold for all possible values of the missing judgments" in output
    assert not any("base: " in warning for warning in output)
    output = compare(judged_launch(whole), on="heuristic_precision").warnings
    assert not any("missing judgments" in warning for warning in output)


def test_verdicts_of_bounds() -> None:
    """A bound of 0 gives no verdict; one at the margin itself does not exceed it."""
    assert [_verdict(*bounds) for bounds in ((0, 1), (0.1, 1), (-1, 0), (-1, -0.1), (-1, 1), (math.nan, math.nan))] == [
        *("cannot tell", "better", "cannot tell", "worse", "cannot tell", "cannot tell"),
    ]
    bounds = (0.3, 0.5), (-0.5, -0.3), (0.2, 0.5), (-0.5, -0.2), (-0.2, 0.2), (-0.2, 0.3), (-0.3, 0.2), (-1, 1)
    assert [_matters(*pair, 0.2) for pair in bounds] == ["yes", "yes", *["cannot tell"] * 2, "no", *["cannot tell"] * 3]
    assert _matters(math.nan, math.nan, 0.2) == "cannot tell"
    assert _matters(0.3, 0.5, 0) == ""


def test_differences_stay_within_1() -> None:
    """Bounds beyond the range of measures are clipped; if one is infinite, there are none."""
    assert [_within(-1.5, 0.5), _within(-0.5, 1.5), _within(-0.5, 0.25)] == [(-1, 0.5), (-0.5, 1), (-0.5, 0.25)]
    assert np.isnan([_within(-math.inf, 0.5), _within(-0.5, math.inf), _within(-math.inf, math.inf)]).all()


def test_queries_needed_by_hand() -> None:
    """40 queries differ by a half, up and down in turn: (1.96 + 0.84)^2 * 40 / 39 * 0.5^2 / 0.1^2 = 201.3 queries."""
    up = [0.75 if n % 2 else 0.25 for n in range(QUERIES)]
    found = compare(
        launch(result("base", [0.5 - (v - 0.5) for v in up]), result("x", up)), effect=0.1, clusters="queries"
    )
    assert (found.rows[1].difference, found.rows[1].verdict, found.rows[1].needed) == (0, "cannot tell", 202)
    better = compare(launch(result("base", QUARTER), result("x", up)), clusters="queries").rows[1]
    assert (better.verdict, math.isnan(better.needed)) == ("better", True)
    same = compare(launch(result("base", HALF), result("x", HALF))).rows[1]
    assert (same.verdict, math.isnan(same.needed)) == ("cannot tell", True)


def test_more_comparisons_need_more_queries() -> None:
    """The critical value is that of the family."""
    noise = noisy(HALF)
    others = [result(f"o{n}", np.random.default_rng(n).random(QUERIES)) for n in range(1, 6)]
    few = compare(launch(result("base", HALF), result("x", noise))).rows[1]
    many = compare(launch(result("base", HALF), result("x", noise), *others)).rows[1]
    assert (few.verdict, many.verdict) == ("cannot tell", "cannot tell")
    assert few.needed < many.needed


def test_queries_needed_are_symmetric() -> None:
    """With a judgment missing, from the midpoint of the possible differences."""
    noise = np.clip(noisy([0.5] * QUERIES), 0, 1).tolist()
    base, trial = (
        between("base", [0.5] * 40, [0.5] * 40),
        between("x", with_one(noise, 3, 0.0), with_one(noise, 3, 0.9)),
    )
    one = rows(base, trial)[1]
    two = compare(judged_launch(base, trial), on="heuristic_precision", baseline={"chunker": "x"}).rows[0]
    assert (one.verdict, one.needed) == ("cannot tell", two.needed)
    assert one.needed > 0


def test_means_are_over_the_queries_that_all_trials_have_a_value_for() -> None:
    """The baseline has no value for one query, the only one on which the other scores."""
    found = compare(launch(result("base", with_one(HALF, 0, math.nan)), result("x", with_one([0.0] * 40, 0, 1.0))))
    assert (found.queries, found.rows[1].mean) == (39, 0)


def test_unanswerable_and_unmeasured_queries_are_counted_separately() -> None:
    """Of queries 1, 2 and 3 without a value, 1 and 2 have no evidence; 0 has no evidence either, but a value."""
    values = [math.nan if n in (1, 2, 3) else 1.0 for n in range(QUERIES)]
    one = dataclasses.replace(result("base", values), evidence_outcomes=[[]] * 3 + [["found"]] * 37)
    found = compare(launch(one))
    assert (found.queries, found.unanswerable, found.unmeasured) == (37, 2, 1)
    judged = dataclasses.replace(between("base", values, values), evidence_outcomes=one.evidence_outcomes)
    found = compare(judged_launch(judged), on="heuristic_precision")
    assert (found.queries, found.unanswerable, found.unmeasured) == (37, 0, 3)


def test_the_design_effect_by_hand() -> None:
    """The two queries of each document score alike: twice the variance, times 39 / 38; a constant trial has none."""
    assert compare(launch(result("base", HALF), result("x", QUARTER))).design_effect == pytest.approx(39 / 19)
    assert math.isnan(compare(launch(result("base", QUARTER))).design_effect)
    # Missing judgments count at their lowest.
    short = judged_launch(between("base", HALF, [1.0] * QUERIES))
    assert compare(short, on="heuristic_precision").design_effect == pytest.approx(39 / 19)


def test_nothing_is_excluded_if_nothing_can_be_tested() -> None:
    """Five documents, one trial always better: it is the best, but the other may be as well."""
    labels = [f"d{n % 5}" for n in range(QUERIES)]
    made = [
        dataclasses.replace(result(name, values), clusters=labels) for name, values in (("base", HALF), ("b", [1] * 40))
    ]
    assert compare(launch(*made)).best.not_separable == ["base", "b"]


def test_noise_in_the_last_bits_excludes_no_trial() -> None:
    """.1 + .2 and .3 are the same score: both may be best."""
    found = compare(launch(result("base", [0.1 + 0.2] * QUERIES), result("x", [0.3] * QUERIES)))
    assert (found.rows[1].verdict, found.rows[1].may_be_best, found.best.not_separable) == (
        "cannot tell",
        True,
        ["base", "x"],
    )


def with_judged(made: TrialResult, low: Floats, high: Floats, *, max_failed: float = 0.5) -> TrialResult:
    """A trial with a judge's measure between bounds."""
    values = np.where(low == high, low, np.nan)
    made.judged["heuristic_precision"] = Judged("j", values, low, high, max_failed=max_failed)  # type: ignore[index]
    return made


def test_a_withheld_trial_is_not_named_best() -> None:
    """Even if its lower bound is the highest: a trial whose judge failed too often is never the winner."""
    half, most = np.full(QUERIES, 0.5), np.full(QUERIES, 0.9)
    missing = np.where(np.arange(QUERIES) == 0, 1.0, most)
    made = [
        with_judged(result("base", HALF), half, half),
        with_judged(result("w", HALF), np.where(np.arange(QUERIES) == 0, 0.0, most), missing, max_failed=0.0),
    ]
    found = compare(judged_launch(*made), on="heuristic_precision")
    assert (found.best.name, found.best.mean, found.rows[1].p_best) == ("base", 0.5, 0.0)
    assert (found.rows[1].verdict, found.rows[1].no_interval) == ("cannot tell", "withheld")


def test_missing_judgments_are_given_as_the_reason() -> None:
    """Twenty documents are enough; there are no bounds because of the missing values."""
    quarter = np.full(QUERIES, 0.25)
    made = [
        with_judged(result("base", HALF), quarter, quarter, max_failed=1.0),
        with_judged(result("x", HALF), quarter, np.full(QUERIES, 0.75), max_failed=1.0),
    ]
    found = compare(judged_launch(*made), on="heuristic_precision")
    assert (found.rows[1].no_interval, found.rows[1].verdict) == ("missing values", "cannot tell")


def test_a_column_is_declared_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, garden_data: Path) -> None:
    """One entry in the list puts a new column into terminal, Markdown, CSV, JSON, frame, page, leaderboard, tags."""
    column = comparison_columns.Column(
        name="passages",
        title="passages",
        rank=12,
        meaning="mean number of selected passages",
        text=lambda row: f"{row.result.efficiency['passages']:.1f} kept",
        value=lambda row: row.result.efficiency["passages"],
        tag=lambda row: f"{row.result.efficiency['passages']:.1f} kept",
    )
    monkeypatch.setattr(comparison_columns, "COLUMNS", (*comparison_columns.COLUMNS, column))
    base = Trial(str(garden_data), Fixed(), BM25(), metrics=("recall@5",))
    made = run(Experiment("n", base, {"chunker": [Fixed(20), Fixed(40)]}, base_dir=tmp_path), store=tmp_path, log=False)
    comparison, found = compare(made), launch_report(made)
    passages = [one.efficiency["passages"] for one in made.results]
    cells = [f"{number:.1f} kept" for number in passages]
    assert all(cell in str(comparison) and cell in markdown(comparison) and cell in html(comparison) for cell in cells)
    assert [float(line["passages"]) for line in csv.DictReader(io.StringIO(as_csv(comparison)))] == passages
    assert [row["passages"] for row in json.loads(as_json(comparison))["rows"]] == passages
    assert comparison.frame()["passages"].tolist() == passages
    page = found.files["report.html"].decode()
    assert all(cell in page for cell in cells)
    assert "mean number of selected passages" in page
    assert json.loads(found.files["leaderboard.json"])["columns"][-1] == "passages"
    assert [tags["passages"] for tags in found.tags.values()] == cells
    assert list(found.columns) == ["verdict", "difference", "p", "interval", "p_best", "passages"]


def test_a_terminal_lists_the_trials_that_matter() -> None:
    """Of 41 trials the baseline, the best and those with the highest means; the rest is one option away."""
    trials = [result(f"t{at}", noisy([(n + at) % 41 / 41 for n in range(QUERIES)], at / 41)) for at in range(40)]
    comparison = compare(launch(result("base", HALF), *trials))
    lines = str(comparison).splitlines()
    names = [line.split()[0] for line in lines if re.match(r" *(t[0-9]+|base) ", line)]
    assert len(names) == 20
    assert names[0] == "base"
    assert comparison.best.name in names[:2]
    assert set(comparison.best.not_separable) <= set(names) or len(comparison.best.not_separable) > 19
    assert any("20 of 41 trials" in line and "harness compare --csv" in line for line in lines)
    assert len(as_csv(comparison).splitlines()) == 42


def test_a_narrow_terminal_keeps_the_most_important_columns() -> None:
    """Tokens go first, then the most frequent loss; the verdict and the difference with its interval stay."""
    comparison = compare(launch(result("base", HALF), result("other", noisy(HALF))))
    heads = [text(comparison, width).splitlines()[2].split("  ") for width in (200, 122, 64)]
    shown = [[name.strip() for name in head if name.strip()] for head in heads]
    assert shown[0][-1] == "tokens"
    assert shown[1][-1] in ("P(best)", "lost mostly", "needed")
    assert shown[2] == ["trial", "mean", "difference", "95 % interval", "verdict"]


BASELINES = [{"chunker": "base"}, {"chunker": "other"}]


def test_several_baselines() -> None:
    """All differences to all of them are one family; the table is that of the first, the others follow."""
    made = launch(result("base", HALF), result("x", noisy(HALF, 0.1)), result("other", HALF[::-1]))
    one, both = compare(made), compare(made, baseline=BASELINES)
    assert both.baseline == one.baseline == "base"
    (other,) = both.against
    alone = compare(made, baseline=BASELINES[1])
    assert other.baseline == alone.baseline == "other"
    assert [row.verdict for row in other.rows] == ["cannot tell", "cannot tell", "baseline"]
    for joint, single in ((both.rows, one.rows), (other.rows, alone.rows)):
        for row, lone in zip(joint, single, strict=True):
            assert (row.mean, row.difference, row.p_best) == (lone.mean, lone.difference, lone.p_best)
            if not row.is_baseline:
                assert row.difference_low <= lone.difference_low <= lone.difference_high <= row.difference_high
                assert row.p >= lone.p
                assert (row.alone_low, row.p_alone) == (lone.alone_low, lone.p_alone)
    for shown in (text(both), markdown(both)):
        assert "against the baseline 'other'" in shown
        assert "adjusted for all 4 comparisons" in shown
    assert "No trial can be distinguished from the baseline 'other'." in answer(both)
    content = json.loads(as_json(both))["against"]
    assert [one["baseline"] for one in content] == ["other"]
    assert [row["verdict"] for row in content[0]["rows"]] == ["cannot tell", "cannot tell", "baseline"]
    assert both.frame()["difference to other"].tolist()[2] == 0
    assert "verdict to other" in as_csv(both).splitlines()[0]
    assert compare(made, baseline=[BASELINES[0], BASELINES[0]]).against == []


def test_any_wrong_verdict_about_any_baseline_is_rare() -> None:
    """If no trial differs, 5 % of the comparisons have a verdict; several families of one baseline each have more."""
    rng = np.random.default_rng(5)
    joint = separate = 0
    for _ in range(120):
        made = launch(*(result(name, rng.normal(0, 1, QUERIES).tolist()) for name in ("base", "other", "c", "d", "e")))
        found = compare(made, baseline=[*BASELINES, {"chunker": "c"}])
        verdicts = {row.verdict for rows in (found.rows, *(one.rows for one in found.against)) for row in rows}
        joint += bool(verdicts & {"better", "worse"})
        alone = [compare(made, baseline=one) for one in (*BASELINES, {"chunker": "c"})]
        separate += any(row.verdict in ("better", "worse") for one in alone for row in one.rows)
    assert joint <= 11  # 95 % of binomial(120, .05) is below 10
    assert separate >= joint


def test_baselines_in_the_file(tmp_path: Path) -> None:
    """A list of params; each must name a trial, and an empty one is none."""
    base = "name: n\ndata: d\nchunker: fixed\nretriever: bm25\ngrid: {retriever: [bm25, dense, hybrid]}\n"
    file = tmp_path / "x.yaml"
    file.write_text(base + "compare: {baseline: [{retriever: bm25}, {retriever: dense}]}\n")
    settings = read_experiment(str(file)).compare
    assert settings.baselines == ({"retriever": "bm25"}, {"retriever": "dense"})
    part = part_of(read_experiment(str(file)), {"retriever": "dense"})
    assert part.compare.baselines == ({"retriever": "dense"},)
    for wrong in ("[]", "[{}]", "[x]", "x", "[{retriever: bm25}, {}]"):
        file.write_text(f"{base}compare: {{baseline: {wrong}}}\n")
        with pytest.raises(ConfigError, match="compare.baseline: expected a mapping of params, .*, or a list of those"):
            read_experiment(str(file))
