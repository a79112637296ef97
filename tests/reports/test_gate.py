"""The regression gate: verdicts and bounds by hand, error rates by simulation, the command on a real store."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from nightly import NIGHTLY

from harness import ConfigError, DataError, Experiment, Launch, Trial, read_experiment
from harness.components.chunkers import Fixed
from harness.components.retrievers import BM25
from harness.core.environment import deciding_versions
from harness.data.manifest import read_manifest, write_manifest
from harness.evaluation.baseline import Baseline, BaselineTrial
from harness.evaluation.results import Judged, TrialResult
from harness.evaluation.stats import Differences, Floats
from harness.experiment.settings import Compare, Gate
from reports import accept_launch, gate
from reports.gate import MARGIN, _check, compare_with_baseline, margins
from reports.gate_files import as_json, files, junit
from reports.gate_result import GateResult, by_urgency, markdown

QUERIES = 120
HARNESS = str(Path(sys.executable).parent / "harness")


def result(values: Sequence[float] | Floats, name: str = "t", clusters: int = 60) -> TrialResult:
    labels = [f"d{n % clusters}" for n in range(QUERIES)]
    evidence_outcomes = [["found"] if value else ["not_retrieved"] for value in values]
    queries = [str(n) for n in range(QUERIES)]
    return TrialResult(
        name, name, {"chunker": name}, queries, labels, {"recall@5": np.array(values, float)}, evidence_outcomes
    )


def launch(*results: TrialResult, margins: Gate | None = None, clusters: str = "documents") -> Launch:
    base = Trial("d", Fixed(), BM25(), metrics=("recall@5",))
    settings = margins or Gate({"recall@5": 0.03})
    made = Experiment("n", base, compare=Compare(clusters=clusters), gate=settings)
    return Launch("l", made, results)


def accepted(*results: TrialResult) -> Baseline:
    def listed(values: Floats) -> list[float | None]:
        return [None if np.isnan(value) else float(value) for value in values]

    trials = [
        BaselineTrial(
            one.name,
            one.params,
            one.fingerprint,
            {name: (listed(values), listed(values)) for name, values in one.scores.items()}
            | {name: (listed(j.low), listed(j.high)) for name, j in one.judged.items()},
            one.evidence_outcomes,
        )
        for one in results
    ]
    return Baseline("n", "l0", "Ada", "2026-01-01", "it was good", {}, results[0].queries, trials)


HALF = np.arange(QUERIES) % 2 * 1.0


def verdict(before: Floats, after: Floats, **given: Any) -> GateResult:
    return compare_with_baseline(launch(result(after), **given), accepted(result(before)))


def test_the_same_results_are_fine_and_certain() -> None:
    """No query differs: nothing is uncertain, even with very few documents."""
    (check,) = verdict(HALF, HALF).checks
    assert (check.verdict, check.difference, check.low, check.high) == ("fine", 0, 0, 0)
    few = compare_with_baseline(launch(result(HALF, clusters=2)), accepted(result(HALF, clusters=2)))
    assert (few.verdict, few.exit_code) == ("fine", 0)


def test_disjoint_queries_cannot_be_compared() -> None:
    """Values for one half in the baseline and for the other today: there is no query to compare."""
    at = np.arange(QUERIES)
    found = verdict(np.where(at < 60, 1.0, np.nan), np.where(at >= 60, 0.0, np.nan))
    assert (found.verdict, found.exit_code) == ("cannot tell", 3)
    assert np.isnan(found.checks[0].low)


def test_worse() -> None:
    """Every fourth answered query is lost: down by 0.125, exit code 1, and the queries are listed with outcomes."""
    after = np.where(np.arange(QUERIES) % 8 == 1, 0.0, HALF)
    found = verdict(HALF, after)
    (check,) = found.checks
    assert (found.verdict, found.exit_code, check.verdict) == ("worse", 1, "worse")
    assert check.difference == pytest.approx(-0.125)
    assert check.low < -0.125 < check.high < 0
    assert {drop.query for drop in found.drops} <= {str(n) for n in range(QUERIES) if n % 8 == 1}
    assert found.drops[0].why == "evidence 1: found → not retrieved"


def test_better_is_fine() -> None:
    """Non-inferiority only requires that it is not worse."""
    assert verdict(HALF, np.maximum(HALF, np.arange(QUERIES) % 8 == 0)).exit_code == 0


def test_a_little_worse_within_the_margin_is_fine() -> None:
    """One query of 120 is lost: 0.008 less, certainly less than the margin of 0.05."""
    after = HALF.copy()
    after[1] = 0.0
    assert verdict(HALF, after, margins=Gate({"recall@5": 0.05})).verdict == "fine"


def test_noise_gives_cannot_tell() -> None:
    """As many queries won as lost, each by 1: shown neither to be as good nor to be worse."""
    after = np.where(np.arange(QUERIES) % 4 < 2, 1 - HALF, HALF)
    found = verdict(HALF, after)
    assert (found.verdict, found.exit_code) == ("cannot tell", 3)
    assert found.checks[0].difference == 0


def test_four_documents_are_too_few_unless_queries_are_the_clusters() -> None:
    """Too few clusters for bounds; with queries as clusters there are enough."""
    after = np.where(np.arange(QUERIES) % 8 == 1, 0.0, HALF)
    before, now = result(HALF, clusters=4), result(after, clusters=4)
    found = compare_with_baseline(launch(now), accepted(before))
    assert (found.verdict, np.isnan(found.checks[0].low)) == ("cannot tell", True)
    assert "too few documents" in markdown(found)
    assert compare_with_baseline(launch(now, clusters="queries"), accepted(before)).verdict == "worse"


def judged(values: Floats, max_failed: float) -> TrialResult:
    low, high = (np.where(np.isnan(values), bound, values) for bound in (0.0, 1.0))
    return replace(result(HALF), judged={"useful": Judged("j", values, low, high, max_failed)})


def test_failing_judgments_never_pass() -> None:
    """Thirty missing judgments widen the bounds; with too many, the mean is withheld: exit code 3 both times."""
    missing = np.where(np.arange(QUERIES) % 4 == 1, np.nan, HALF)
    for max_failed in (0.5, 0.02):
        made = launch(judged(missing, max_failed), margins=Gate({"useful": 0.03}))
        found = compare_with_baseline(made, accepted(judged(HALF, 0.02)))
        assert found.exit_code == 3
        assert found.checks[0].complete == 90
        assert found.drops[0].why == "a judgment is missing today"


def test_nothing_in_common_is_never_fine() -> None:
    """A baseline without a single value gives no verdict."""
    before = result(HALF)
    empty = accepted(replace(before, scores={"recall@5": np.full(QUERIES, np.nan)}))
    assert compare_with_baseline(launch(before), empty).verdict == "cannot tell"


def test_one_document_against_five() -> None:
    """Of six documents five lose and one wins: 7 of 64 sign patterns are at least as bad, so it is not significant."""
    lost = np.where(np.arange(QUERIES) % 6 < 5, 0.0, 1.0)
    won = np.where(np.arange(QUERIES) % 6 < 5, 1.0, 0.0)
    found = compare_with_baseline(launch(result(lost, clusters=6)), accepted(result(won, clusters=6)))
    assert found.verdict == "cannot tell"


def between(low: Floats, high: Floats, name: str = "t", clusters: int = 60, max_failed: float = 1.0) -> TrialResult:
    """A trial judged on every query; if the bounds differ, the judgment is missing."""
    judged = Judged("j", np.where(low == high, low, np.nan), low, high, max_failed)
    return replace(result(HALF, name, clusters), judged={"useful": judged})


def with_one(value: float, at: int, other: float) -> Floats:
    return np.where(np.arange(QUERIES) == at, other, value)


USEFUL = Gate({"useful": 0.03})


def test_judgments_missing_then_and_now_by_hand() -> None:
    """Before: 0.5 each, except one from 0.2 to 0.6. Now: 0.1 and 0.4 in turn, except one from 0.1 to 0.9, not 0.4.

    Means use the midpoint of missing judgments. Sums from 59.7 to 60.1 and from 29.7 to 30.5 differ by -30.4 to -29.2.
    The bounds reach as far beyond the one as beyond the other.
    """
    steps, first = np.where(HALF == 1, 0.4, 0.1), np.arange(QUERIES) == 1
    then = between(with_one(0.5, 0, 0.2), with_one(0.5, 0, 0.6))
    now = between(np.where(first, 0.1, steps), np.where(first, 0.9, steps))
    (check,) = compare_with_baseline(launch(now, margins=USEFUL), accepted(then)).checks
    assert (check.baseline, check.today) == (pytest.approx(59.9 / 120), pytest.approx(30.1 / 120))
    assert check.difference == pytest.approx((30.1 - 59.9) / 120)
    assert check.low + check.high == pytest.approx((-30.4 - 29.2) / 120)
    assert check.low < -30.4 / 120 < -29.2 / 120 < check.high
    assert (check.complete, check.queries, check.verdict) == (119, 120, "worse")


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_missing_judgment_is_not_the_same(value: float) -> None:
    """All queries as before, except one that is unknown: the bounds must allow for 1/120 better or worse."""
    then = between(np.full(QUERIES, value), np.full(QUERIES, value))
    now = between(with_one(value, 0, 0.0), with_one(value, 0, 1.0))
    (check,) = compare_with_baseline(launch(now, margins=USEFUL), accepted(then)).checks
    assert not check.low > -value / 120
    assert not check.high < (1 - value) / 120


def test_queries_without_a_value_then_or_now_are_left_out() -> None:
    """Thirty have a value in both, of which three are lost: down by 0.1. Means are over the queries of each run."""
    at = np.arange(QUERIES)
    then = np.where(at < 60, np.nan, HALF)
    now = np.where(at >= 90, np.nan, np.where((at > 60) & (at < 67), 0.0, HALF))
    (check,) = verdict(then, now).checks
    assert (check.baseline, check.today, check.difference) == (0.5, 42 / 90, pytest.approx(-0.1))
    assert check.low + check.high == pytest.approx(-0.2)
    assert check.low < -0.1 < check.high
    assert (check.complete, check.queries) == (90, 90)


def test_identical_results_with_missing_values_are_certain() -> None:
    """Two documents, one query without a value: no query differs."""
    values = np.where(np.arange(QUERIES) == 0, np.nan, HALF)
    found = compare_with_baseline(launch(result(values, clusters=2)), accepted(result(values, clusters=2)))
    assert (found.checks[0].verdict, found.checks[0].low, found.checks[0].high) == ("fine", 0, 0)


def test_a_withheld_mean_is_never_fine_and_does_not_affect_other_checks() -> None:
    """One judgment missing if none may be: not even a margin of 1 helps; recall is checked as if it were alone."""
    after = np.where(np.arange(QUERIES) % 8 == 1, 0.0, HALF)
    one = between(with_one(0.5, 0, 0.0), with_one(0.5, 0, 1.0), max_failed=0.0)
    now = replace(one, scores={"recall@5": after})
    then = between(np.full(QUERIES, 0.5), np.full(QUERIES, 0.5))
    found = compare_with_baseline(launch(now, margins=Gate({"useful": 1, "recall@5": 0.03})), accepted(then))
    useful, recall = found.checks
    assert (useful.verdict, np.isnan(useful.today), recall.verdict) == ("cannot tell", True, "worse")
    (alone,) = verdict(HALF, after).checks
    assert (recall.low, recall.high) == (alone.low, alone.high)
    assert found.verdict == "worse"


def test_bounds_hold_for_all_checks_at_once() -> None:
    """The bounds of recall widen with a second check, in which other queries differ and one has no value."""
    after = np.where(np.arange(QUERIES) % 8 == 1, 0.0, HALF)
    other = np.where(np.arange(QUERIES) % 8 == 3, 0.0, HALF)
    other[0] = np.nan
    now = replace(between(other, other), scores={"recall@5": after})
    both = launch(now, margins=Gate({"useful": 0.03, "recall@5": 0.03}))
    _, recall = compare_with_baseline(both, accepted(between(HALF, HALF))).checks
    (alone,) = verdict(HALF, after).checks
    assert recall.low < alone.low < alone.high < recall.high


def test_each_side_has_the_whole_alpha() -> None:
    """Five documents that all lose: one of 32 sign patterns is as bad, which is less than 5 %."""
    found = compare_with_baseline(launch(result(0 * HALF, clusters=5)), accepted(result(0 * HALF + 1, clusters=5)))
    assert found.verdict == "worse"
    strict = launch(result(0 * HALF, clusters=5), margins=Gate({"recall@5": 0.03}, alpha=0.02))
    assert compare_with_baseline(strict, accepted(result(0 * HALF + 1, clusters=5))).verdict == "cannot tell"


def test_verdicts_of_bounds() -> None:
    """Fine down to the margin itself, worse below 0; cannot tell without bounds."""

    def word(low: float, high: float) -> tuple[str, bool, bool]:
        sides = np.array([low]), np.array([high])
        found = Differences(np.ones(1), np.ones(1), *sides, *sides, 2.0)
        now, then = result(HALF), accepted(result(HALF)).trials[0]
        check = _check(launch(now), (now, then, "recall@5"), 0, 0.0, found, same=False)
        return check.verdict, bool(np.isnan(check.low)), bool(np.isnan(check.high))

    assert [word(*pair)[0] for pair in ((-0.03, 0.1), (-0.03, -0.01), (-0.04, 0), (-0.04, -0.01))] == [
        *("fine", "fine", "cannot tell", "worse")
    ]
    assert word(-np.inf, np.inf) == ("cannot tell", True, True)


def test_trials_are_compared_by_name() -> None:
    """In any order."""
    made = result(HALF, "a"), result(1 - HALF, "b")
    found = compare_with_baseline(launch(*made), accepted(*made[::-1]))
    assert [(check.trial, check.verdict, check.low) for check in found.checks] == [("a", "fine", 0), ("b", "fine", 0)]


def test_the_only_trial_may_have_another_name() -> None:
    """As after a rename."""
    found = compare_with_baseline(launch(result(HALF, "new")), accepted(result(HALF, "old")))
    assert (found.verdict, found.changed) == ("fine", ["new: chunker: old → new"])
    there, here = replace(result(HALF), params={"data": "there"}), replace(result(HALF), params={"data": "here"})
    assert compare_with_baseline(launch(here), accepted(there)).changed == []


def test_queries_with_the_largest_drops_are_listed_first() -> None:
    """With the values before and after, midpoints if missing; at most twenty, none if nothing is lost."""
    then = between(with_one(1.0, 3, 0.6), np.ones(QUERIES))
    now = between(np.where(np.arange(QUERIES) == 7, 0.5, with_one(1.0, 3, 0.0)), with_one(1.0, 7, 0.5))
    drops = compare_with_baseline(launch(now, margins=USEFUL), accepted(then)).drops
    assert [(drop.query, drop.before, drop.after) for drop in drops] == [("7", 1, 0.5), ("3", 0.8, 0.5)]
    assert [drop.why for drop in drops] == [
        "the same evidence is selected, but ranked lower or judged otherwise",
        "a judgment is missing today",
    ]
    assert len(verdict(np.ones(QUERIES), HALF).drops) == 20
    little = np.where(np.arange(QUERIES) == 1, 0.0, HALF)
    (drop,) = verdict(HALF, little, margins=Gate({"recall@5": 0.5})).drops
    assert (drop.query, drop.before, drop.after) == ("1", 1, 0)
    won = np.where(np.arange(QUERIES) % 8 == 0, 1.0, little)
    assert verdict(HALF, won).verdict == "fine"
    assert verdict(HALF, won).drops == []
    # They are also listed if the verdict is cannot tell.
    assert len(verdict(HALF, np.where(np.arange(QUERIES) % 4 < 2, 1 - HALF, HALF)).drops) == 20
    even = np.where(np.arange(QUERIES) == 0, 1.0, little)
    assert verdict(HALF, even, margins=Gate({"recall@5": 0.5})).drops == []


def test_only_changed_evidence_outcomes_are_listed() -> None:
    """The second of two items."""
    then = replace(result(HALF), evidence_outcomes=[["found", "found"]] * QUERIES)
    now = replace(
        result(np.where(np.arange(QUERIES) == 1, 0.0, HALF)), evidence_outcomes=[["found", "split"]] * QUERIES
    )
    (drop,) = compare_with_baseline(launch(now), accepted(then)).drops
    assert drop.why.startswith("evidence 2: found → ")


def test_without_margins_the_primary_metric_is_gated() -> None:
    """It may fall by 0.02."""
    assert margins(launch(result(HALF), margins=Gate())) == {"recall@5": MARGIN} == {"recall@5": 0.02}


def test_other_queries_need_a_new_baseline() -> None:
    """Scores of other queries cannot be paired."""
    before = replace(accepted(result(HALF)), queries=[f"q{n}" for n in range(QUERIES)])
    with pytest.raises(ConfigError, match="lists other queries"):
        compare_with_baseline(launch(result(HALF)), before)


def test_a_new_metric_needs_a_new_baseline() -> None:
    """A metric that the baseline lacks cannot be compared."""
    with pytest.raises(ConfigError, match="baseline has no mrr"):
        compare_with_baseline(launch(result(HALF), margins=Gate({"mrr": 0.1})), accepted(result(HALF)))


def test_changed_settings_are_reported() -> None:
    """A single trial is compared even if its settings changed; they are listed as likely causes."""
    now = replace(result(HALF, "t"), params={"chunker": "t", "selector.top_k.k": "3"})
    found = compare_with_baseline(launch(now), accepted(result(HALF, "t")))
    assert found.changed == ["t: selector.top_k.k: absent → 3"]


def test_renderings() -> None:
    """JUnit: worse is a failure; Markdown keeps its columns; text is escaped for XML and Markdown."""
    after = np.where(np.arange(QUERIES) % 8 == 1, 0.0, HALF)
    found = verdict(HALF, after)
    drop = replace(found.drops[0], text="a | b <script> \x00 `code`\nnew line")
    found = replace(found, drops=[drop])
    suites = ElementTree.fromstring(junit(found))
    assert suites.attrib == {"tests": "1", "failures": "1", "errors": "0"}
    assert "<script>" in (suites.findtext("testsuite/testcase/failure") or "")
    (row,) = (line for line in markdown(found).splitlines() if "new line" in line)
    assert row.count(" | ") == 6
    assert "<script>" not in row
    injected = replace(found, baseline=replace(found.baseline, why="fine\n## <script> \ud800"))
    assert "\n## <script>" not in markdown(injected)
    assert all(isinstance(content, bytes) for content in files(injected).values())
    assert json.loads(as_json(found))["exit_code"] == 1
    assert found.frame().loc[0, "verdict"] == "worse"
    assert "&lt;script&gt;" in found._repr_html_()


RUNS = [pytest.param(120, id="small"), pytest.param(1000, id="large", marks=pytest.mark.long)]


def scheduled(rng: np.random.Generator, drop: float, noise: float) -> TrialResult:
    """The scores of a run: each value flips with a probability (judge variance), and some answered queries are lost."""
    flipped = np.where(rng.random(QUERIES) < noise, 1 - HALF, HALF)
    return result(np.where((flipped == 1) & (rng.random(QUERIES) < 2 * drop), 0.0, flipped))


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("noise", [0.02, 0.1, 0.3])
def test_identical_runs_raise_few_alarms(runs: int, noise: float) -> None:
    """The same system, judged with noise: called worse in at most 5 % of runs, over many accepted baselines."""
    rng = np.random.default_rng(41)
    alarms = sum(
        compare_with_baseline(launch(scheduled(rng, 0, noise)), accepted(scheduled(rng, 0, noise))).verdict == "worse"
        for _ in range(runs)
    )
    assert alarms / runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)


@pytest.mark.parametrize("runs", RUNS)
def test_a_drop_is_detected(runs: int) -> None:
    """Without noise, a loss of 0.03 on 120 queries is called worse sometimes, one of 0.1 nearly always.

    Three or four queries lost and none won are not significant: that many heads in a row occur by chance.
    """
    rng = np.random.default_rng(43)
    before = accepted(scheduled(rng, 0, 0))
    seen = [
        sum(compare_with_baseline(launch(scheduled(rng, drop, 0)), before).verdict == "worse" for _ in range(runs))
        / runs
        for drop in (0.0, 0.03, 0.1)
    ]
    assert seen[0] == 0
    assert 0.1 < seen[1] < 0.5
    assert seen[2] > 0.9


# -- the command

Harness = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def harness(garden_data: Path, tmp_path: Path, tracking: str) -> Harness:
    """Runs the command in a folder with an experiment, against a fresh MLflow store."""
    (tmp_path / "nightly.yaml").write_text(NIGHTLY)

    def run(*arguments: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
        command = [HARNESS, "gate", "nightly.yaml", "--tracking", tracking, *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ)
        assert done.returncode == code, done.stderr + done.stdout
        return done

    return run


def test_scheduled_runs_on_a_real_store(harness: Harness, tmp_path: Path, tracking: str) -> None:
    """No baseline, a baseline, an identical run, a worse one, another baseline, and the trend of all of them."""
    assert "no baseline of 'nightly' has been accepted" in harness(code=2).stderr
    assert "--why TEXT" in harness("--accept", code=2).stderr
    assert "accepted by Ada: first" in harness("--accept", "--why", "first", "--who", "Ada").stdout
    fine = harness("--out", "out").stdout
    assert "nightly: fine" in fine
    assert "Ada" in fine
    file = tmp_path / "nightly.yaml"
    file.write_text(NIGHTLY.replace("top_k: {k: 4}", "threshold: {score: 1000}"))
    worse = harness("--out", "out", code=1).stdout
    assert "found → dropped by threshold" in worse
    assert "How many litres does" in worse
    assert "changed since: fixed · bm25: selector: top_k → threshold" in worse
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "gate.md",
        "gate.json",
        "junit.xml",
        "history.svg",
        "history.html",
    }
    output = json.loads((tmp_path / "out/gate.json").read_text())
    assert [run["points"]["recall@3"]["verdict"] for run in output["history"]["fixed · bm25"]] == [0.0, 1.0]
    ElementTree.parse(tmp_path / "out/history.svg")
    file.write_text("name: nightly\nretriver: bm25\n")
    harness("--out", "out", code=2)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"gate.md", "gate.json", "junit.xml"}
    assert "retriver" in (tmp_path / "out/gate.md").read_text()
    file.write_text(NIGHTLY.replace("top_k: {k: 4}", "threshold: {score: 1000}"))
    assert "--out does not go with --accept" in harness("--accept", "--why", "x", "--out", "out", code=2).stderr
    harness("--accept", "--why", "an empty selection is wanted now", "--who", "Ben")
    assert "compared with the baseline accepted by Ben" in harness().stdout

    from mlflow import MlflowClient

    client = MlflowClient(tracking)
    runs = client.search_runs([client.get_experiment_by_name("nightly").experiment_id])
    kinds = [run.data.tags["kind"] for run in runs]
    assert (kinds.count("baseline"), kinds.count("trend"), kinds.count("trial")) == (2, 1, 2)
    (trend,) = (run for run in runs if run.data.tags["kind"] == "trend")
    assert len(client.get_metric_history(trend.info.run_id, "recall_03")) == 3
    gated = [run for run in runs if run.data.tags.get("gate") and run.data.tags["kind"] == "launch"]
    assert len(gated) == 3
    assert {file.path for file in client.list_artifacts(gated[0].info.run_id, "gate")} >= {"gate/junit.xml"}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda value: value["trials"][0]["scores"].update({"recall@5": [[1.0]]}), "trials.0.scores"),
        (lambda value: value["trials"][0]["scores"]["recall@5"][0].pop(), "not have one score for each of 120 queries"),
        (lambda value: value["trials"][0].update(evidence_outcomes=[]), "not have one score for each of 120 queries"),
        (lambda value: value.update(measured=None), "measured"),
        (lambda value: value.pop("queries"), "queries"),
        (lambda value: value.update(format=0), "is not a baseline of format 1"),
    ],
)
def test_a_damaged_baseline_is_reported(damage: Callable[[dict[str, Any]], Any], message: str) -> None:
    """One line that names the place of the damage."""
    value = json.loads(json.dumps(accepted(result(HALF)).to_json()))
    assert Baseline.from_json(value, where="here") == accepted(result(HALF))
    damage(value)
    with pytest.raises(DataError, match=f"^here: .*{message}"):
        Baseline.from_json(value, where="here")


REFUSED = [
    (
        ("tokenizer: words", "tokenizer: words\nevidence: {coverage: 0.9}"),
        "the coverage is not the same as in the baseline",
    ),
    (("tokenizer: words", "tokenizer: o200k_base"), "the tokenizer is not the same as in the baseline"),
    (("gate:", "judges: [heuristic_precision]\ngate:"), "the judges are not the same as in the baseline"),
    (("gate:", "grid: {selector.top_k.k: [3, 4]}\ngate:"), "the trials are"),
    (("recall@3: 0.02", "recall@3: -1"), "gate.margins.recall@3: expected a difference"),
    (("recall@3: 0.02", "recal@3: 0.02"), "gate.margins: "),
    (("gate: {", "gate: {alfa: 1, "), "gate: expected a mapping with the keys margins, alpha"),
]


def test_what_cannot_be_compared_is_refused(garden_data: Path, tmp_path: Path, tracking: str) -> None:
    """Other evidence rules, judges, trials or queries, and errors in the file: one line each, and no run is logged."""
    file, given = tmp_path / "nightly.yaml", {"store": tmp_path / "s", "tracking": tracking}
    file.write_text(NIGHTLY)
    accept_launch(read_experiment(file), why="first", who="Ada", **given)
    for change, message in REFUSED:
        file.write_text(NIGHTLY.replace(*change))
        with pytest.raises(ConfigError, match=message):
            gate(read_experiment(file), **given)
    file.write_text(NIGHTLY)
    found = gate(read_experiment(file), **given)
    assert (found.verdict, len(found.history["fixed · bm25"])) == ("fine", 1)
    path = garden_data / "queries/validation.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    write_manifest(read_manifest(garden_data))
    with pytest.raises(ConfigError, match="the queries are not the same as in the baseline accepted on .* by Ada"):
        gate(read_experiment(file), **given)


OWN = """\
from dataclasses import dataclass
from harness import Chunker


@dataclass(frozen=True)
class Halves(Chunker):
    def split(self, doc):
        middle = len(doc.text) // 2
        return [(0, middle), (middle, len(doc.text))]
"""


def test_what_changed_comes_first_and_what_is_fine_last(garden_data: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """The file of a custom chunker, and a library that decides numbers; the trial that did not change is fine."""
    file, given = tmp_path / "nightly.yaml", {"store": tmp_path / "s", "tracking": f"jsonl:{tmp_path / 'runs'}"}
    grid = "grid: {chunker: [own.py:Halves, fixed: {size: 20}]}\ncompare: {margin: 0.25}\n"
    file.write_text(NIGHTLY.split("gate:")[0] + grid)
    (tmp_path / "own.py").write_text(OWN)
    accept_launch(read_experiment(file), why="first", who="Ada", **given)
    (tmp_path / "own.py").write_text(OWN.replace("// 2", "// 9"))
    now = {**deciding_versions(), "numpy": "9.9"}
    monkeypatch.setattr(sys.modules["reports.gate"], "deciding_versions", lambda: now)
    found = gate(read_experiment(file), **given)
    assert {check.margin for check in found.checks} == {0.25}  # that of the comparison
    changed, text = list(found.changed), str(found)
    assert changed[0].startswith("library numpy: ")
    assert changed[0].endswith(" → 9.9")
    assert changed[1:] == ["chunker halves: its file has changed (halves)"]
    assert (
        text.index("changed since: library numpy") < text.index("changed since: chunker halves") < text.index("| trial")
    )
    assert by_urgency(found)[-1].verdict == "fine"
    if found.verdict != "fine":
        assert text.index("| halves |") < text.index("### Fine") < text.index("| fixed |")


def test_a_baseline_without_code_and_libraries_is_read(garden_data: Path, tmp_path: Path) -> None:
    """Those of earlier versions lack them."""
    (tmp_path / "nightly.yaml").write_text(NIGHTLY)
    baseline = accept_launch(
        read_experiment(tmp_path / "nightly.yaml"),
        why="first",
        store=tmp_path / "s",
        tracking=f"jsonl:{tmp_path / 'r'}",
    )
    content = baseline.to_json()
    assert content["packages"]["numpy"]
    assert content["trials"][0]["code"]["chunker fixed"] == {"version": "1"}
    del content["packages"], content["trials"][0]["code"]
    found = Baseline.from_json(content, where="x")
    assert (found.packages, found.trials[0].code) == ({}, {})
