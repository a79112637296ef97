"""The regression gate: is today's retrieval as good as the accepted baseline?"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.core.environment import deciding_versions
from harness.core.errors import ConfigError
from harness.core.plurals import plural
from harness.core.records import Floats
from harness.evaluation.baseline import Baseline, BaselineTrial
from harness.evaluation.results import TrialResult, resampling_seed
from harness.evaluation.stats import Differences, Sums, cluster_sums, paired_differences
from harness.experiment.settings import Gate
from harness.running.acceptance import code_of, selected
from harness.running.launch_result import Launch
from harness.running.primary_metric import bounds_of, primary_metric
from harness.running.session import Session
from reports.gate_passages import PassageRecord, selected_passages
from reports.gate_result import LISTED, Check, Drop, GateResult, Verdict
from reports.numbers import outcome_words

MARGIN = 0.02
"""How far the primary metric may fall if the experiment sets no margins."""
_MOST_DROPS = 20
"""Max queries listed for each check, those with the largest drops."""


def compare_with_baseline(launch: Launch, baseline: Baseline) -> GateResult:
    """Returns the result of the gate for a launch with the data, queries and judges of the baseline; logs nothing.

    Raises ConfigError if the baseline has other queries, or lacks a gated metric.
    """
    gate = launch.experiment.gate
    if list(baseline.queries) != list(launch.results[0].queries):
        raise ConfigError("gate: the accepted baseline lists other queries; --accept --why sets a new baseline")
    pairs = [(result, _before(result, baseline), metric) for result in launch.results for metric in margins(launch)]
    for _, before, metric in pairs:
        if metric not in before.scores:
            raise ConfigError(f"gate: the accepted baseline has no {metric}; --accept --why sets a new baseline")
    checks = _checks(launch, pairs, gate)
    drops = [drop for pair, check in zip(pairs, checks, strict=True) for drop in _drops(launch, *pair, check)]
    changed = [*_packages(baseline), *_code(launch.results, baseline)]
    changed += [line for result in launch.results for line in _changed(result, _before(result, baseline))]
    worse = {
        (result.name, at)
        for (result, before, metric), check in zip(pairs, checks, strict=True)
        for at in _worse(result, before, metric, check)
    }
    return GateResult(launch.experiment.name, launch, baseline, gate.alpha, checks, drops, len(worse), changed, {})


def margins(launch: Launch) -> dict[str, float]:
    """Returns how far each gated metric may fall, by name.

    Without margins of the gate, the primary metric may fall by the margin of the comparison, else by `MARGIN`.
    """
    experiment = launch.experiment
    if experiment.gate.margins:
        return dict(experiment.gate.margins)
    return {primary_metric(experiment, launch.results): experiment.compare.margin or MARGIN}


def _before(result: TrialResult, baseline: Baseline) -> BaselineTrial:
    """The baseline's trial of the same name, or its only trial."""
    if len(baseline.trials) == 1:
        return baseline.trials[0]
    return next(trial for trial in baseline.trials if trial.name == result.name)


Pair = tuple[TrialResult, BaselineTrial, str]


def _checks(launch: Launch, pairs: Sequence[Pair], gate: Gate) -> list[Check]:
    low, high, valid = (np.array(side) for side in zip(*(_differences(*pair) for pair in pairs), strict=True))
    results = launch.results[0]
    clusters = results.queries if launch.experiment.compare.clusters == "queries" else results.clusters
    low_sums, _ = cluster_sums(np.where(valid, low, 0.0), clusters)
    high_sums, _ = cluster_sums(np.where(valid, high, 0.0), clusters)
    sizes, _ = cluster_sums(valid.astype(np.float64), clusters)
    seed = resampling_seed(results.queries, "gate")
    tested = np.array([not (metric in one.judged and one.judged[metric].withheld) for one, _, metric in pairs])
    tested &= valid.any(axis=1)
    found = paired_differences(Sums(low_sums, high_sums, sizes), seed=seed, tested=tested, level=1 - 2 * gate.alpha)
    same = (np.where(valid, low, 0.0) == 0).all(axis=1) & (np.where(valid, high, 0.0) == 0).all(axis=1)
    same &= valid.any(axis=1)
    means = np.where(valid, (low + high) / 2, 0.0).sum(axis=1) / np.maximum(1, valid.sum(axis=1))
    return [_check(launch, pair, at, float(means[at]), found, same=bool(same[at])) for at, pair in enumerate(pairs)]


def _differences(result: TrialResult, before: BaselineTrial, metric: str) -> tuple[Floats, Floats, Any]:
    """Min and max possible difference per query, and whether the query has a value both in the baseline and today."""
    (low,), (high,) = bounds_of([result], metric)
    old_low, old_high = before.bounds(metric)
    return low - old_high, high - old_low, ~(np.isnan(low) | np.isnan(old_low))


def _check(launch: Launch, pair: Pair, at: int, difference: float, found: Differences, *, same: bool) -> Check:
    result, before, metric = pair
    margin = margins(launch)[metric]
    (low,), _ = bounds_of([result], metric)
    today = _today(result, metric)
    # If no query differs, nothing is uncertain, even with very few documents.
    bottom, top = (0.0, 0.0) if same else (float(found.low[at]), float(found.high[at]))
    judged = result.judged.get(metric)
    total = judged.total if judged else int((~np.isnan(low)).sum())
    verdict: Verdict = "cannot tell"
    if math.isnan(today) or math.isnan(before.mean(metric)):
        verdict = "cannot tell"  # too many judgments are missing, or nothing to compare with
    elif bottom >= -margin:
        verdict = "fine"
    elif top < 0:
        verdict = "worse"
    return Check(
        result.name,
        metric,
        before.mean(metric),
        today,
        difference,
        bottom if math.isfinite(bottom) else math.nan,
        top if math.isfinite(top) else math.nan,
        margin,
        judged.complete if judged else total,
        total,
        verdict,
    )


def _today(result: TrialResult, metric: str) -> float:
    """The mean, computed as in the baseline: midpoints for missing judgments; NaN if it is withheld."""
    if math.isnan(result.mean(metric)):
        return math.nan
    (low,), (high,) = bounds_of([result], metric)
    return math.fsum(((low + high) / 2)[~np.isnan(low)]) / int((~np.isnan(low)).sum())


def _worse(result: TrialResult, before: BaselineTrial, metric: str, check: Check) -> list[int]:
    """The queries whose score dropped on a metric that is not fine, by their index; the largest drop first."""
    if check.verdict == "fine" and check.difference >= 0:
        return []
    lost = np.nan_to_num(_middle(before.bounds(metric)) - _middle(_bounds(result, metric)))
    return [at for at in np.argsort(-lost, kind="stable").tolist() if lost[at] > 1e-9]


def _bounds(result: TrialResult, metric: str) -> tuple[Floats, Floats]:
    (low,), (high,) = bounds_of([result], metric)
    return low, high


def _middle(bounds: tuple[Floats, Floats]) -> Floats:
    return (bounds[0] + bounds[1]) / 2


def _drops(launch: Launch, result: TrialResult, before: BaselineTrial, metric: str, check: Check) -> list[Drop]:
    """The queries with the largest drops on a metric, with their changed evidence outcomes."""
    low, high = _bounds(result, metric)
    now, then = _middle((low, high)), _middle(before.bounds(metric))
    order = _worse(result, before, metric, check)[:_MOST_DROPS]
    session = launch.session
    texts = session.outputs(session.trials[0]).work.query_texts if session else [""] * len(now)
    return [
        Drop(
            result.name,
            metric,
            result.queries[at],
            texts[at],
            float(then[at]),
            float(now[at]),
            _why(before.evidence_outcomes[at], result.evidence_outcomes[at], missing=bool(low[at] != high[at])),
            *(_passages(session, result, before, at) if session and place < LISTED else ([], [])),
        )
        for place, at in enumerate(order)
    ]


def _passages(
    session: Session, result: TrialResult, before: BaselineTrial, at: int
) -> tuple[list[PassageRecord], list[PassageRecord]]:
    """The passages selected for a query when the baseline was accepted, and today."""
    work = session.outputs(session.trials[0]).work
    query = work.queries[at]
    accepted = before.selections[at] if before.selections else ()
    now = selected(session, result.name, at)

    def text(doc: str, start: int, end: int) -> str:
        known = doc in work.returned or doc in work.data.by_id
        return work.text(doc, start, end) if known else "(a passage that was not in the corpus)"

    return selected_passages(text, query, accepted), selected_passages(text, query, now)


def _why(before: Sequence[str], after: Sequence[str], *, missing: bool) -> str:
    """What changed for a query, by the loss attribution of its evidence."""
    if missing:
        return "a judgment is missing today"
    changes = [
        f"evidence {number}: {outcome_words(old)} → {outcome_words(new)}"
        for number, (old, new) in enumerate(zip(before, after, strict=True), 1)
        if old != new
    ]
    return "; ".join(changes) or "the same evidence is selected, but ranked lower or judged otherwise"


def _packages(baseline: Baseline) -> list[str]:
    """Packages that may change a number and have another version than when the baseline was accepted."""
    if not baseline.packages:
        return []
    now = deciding_versions()
    names = [name for name in (*baseline.packages, *now) if baseline.packages.get(name) != now.get(name)]
    absent = "not installed"
    return [
        f"library {name}: {baseline.packages.get(name, absent)} → {now.get(name, absent)}"
        for name in dict.fromkeys(names)
    ]


def _code(results: Sequence[TrialResult], baseline: Baseline) -> list[str]:
    """Custom components whose file changed, and built-in ones with another version or other facts."""
    lines: dict[str, list[str]] = {}
    for result in results:
        before, now = _before(result, baseline).code, code_of(result)
        for part in before.keys() & now.keys():
            for name in dict.fromkeys((*before[part], *now[part])):
                old, new = before[part].get(name), now[part].get(name)
                if old != new:
                    change = "its file has changed" if name == "file" and old and new else f"{name}: {old} → {new}"
                    lines.setdefault(f"{part}: {change}", []).append(result.name)
    shared = len(results) > 1
    return [f"{line} ({_listed(trials)})" if shared else line for line, trials in sorted(lines.items())]


def _listed(trials: Sequence[str]) -> str:
    return ", ".join(trials) if len(trials) <= 3 else f"{plural(len(trials), 'trial')}"


def _changed(result: TrialResult, before: BaselineTrial) -> list[str]:
    """Settings that differ from those of the baseline: likely causes."""
    keys = dict.fromkeys((*before.params, *result.params))
    return [
        f"{result.name}: {key}: {before.params.get(key, 'absent')} → {result.params.get(key, 'absent')}"
        for key in keys
        if key != "data" and before.params.get(key) != result.params.get(key)
    ]
