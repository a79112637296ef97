"""Comparison of trials with a baseline and with the best trial, paired over the same queries."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from harness.components.roles import judge_measures
from harness.core.plurals import plural
from harness.evaluation.metrics import split_metric
from harness.evaluation.results import TrialResult
from harness.evaluation.stats import (
    ALPHA,
    FEW_CLUSTERS,
    FEWEST_CLUSTERS,
    TESTABLE_CLUSTERS,
    Choice,
    Floats,
    Intervals,
    Sums,
    best_of,
    cluster_bootstrap,
    cluster_sums,
    design_effect,
    holm,
    normal_critical,
    paired_differences,
    queries_needed,
)
from harness.evaluation.stats.clusters import standard_errors
from harness.experiment.params import matching
from harness.experiment.settings import Compare
from harness.running.launch_result import Launch
from harness.running.primary_metric import Scores, chunkings, primary_metric, scores_of
from reports.comparison import Best, Comparison
from reports.comparison_row import Matters, Row, Verdict
from reports.judge_notes import notes_on
from reports.system_notes import system_notes


def compare(
    launch: Launch,
    *,
    on: str | None = None,
    baseline: Mapping[str, object] | None = None,
    margin: float | None = None,
    effect: float | None = None,
    clusters: str | None = None,
) -> Comparison:
    """Compares a launch's trials on one metric.

    `on` defaults to the experiment's `compare.on`; else to the first metric at a token budget, because at equal k chunk
    size and context size are confounded; else to recall@1000t if the chunkers differ. `baseline` gives params of the
    baseline trial (the first that has them all). `baseline`, `margin`, `effect` and `clusters` default to those of the
    experiment. Verdicts follow from simultaneous 95 % intervals: 5 % is the probability that any verdict is wrong.
    Raises ConfigError for an unknown metric or baseline.
    """
    settings = _settings(launch.experiment.compare, margin, effect, clusters)
    results = launch.results
    metric = on or primary_metric(launch.experiment, results)
    asked = baseline or settings.baseline
    found = matching([result.params for result in results], asked, "compare.baseline")
    at = found[0]
    scores = scores_of(results, metric, settings.clusters)
    sizes = cluster_sums(scores.low, scores.clusters)[1]
    choice = _choice(scores)
    rows = _rows(launch, at, scores, settings, choice)
    measured = set(scores.index)
    unanswerable = sum(
        not evidence_outcomes and at not in measured
        for at, evidence_outcomes in enumerate(results[0].evidence_outcomes)
    )
    unanswerable = 0 if metric in results[0].judged else unanswerable
    effects = design_effect(scores.low, scores.clusters)
    return Comparison(
        question=launch.experiment.question,
        metric=metric,
        baseline=results[at].name,
        rows=rows,
        best=_best(choice, rows),
        queries=scores.queries,
        unanswerable=unanswerable,
        unmeasured=len(results[0].queries) - scores.queries - unanswerable,
        clusters=len(sizes),
        clusters_by=settings.clusters,
        design_effect=float(np.median(effects[~np.isnan(effects)])) if not np.isnan(effects).all() else math.nan,
        margin=settings.margin,
        effect=settings.effect,
        final=launch.session is not None and launch.session.final,
        warnings=[
            *_warnings(launch, metric, len(sizes)),
            *_judge_notes(launch, metric),
            *system_notes(launch, metric),
            *([_ambiguous(asked, len(found))] if asked and len(found) > 1 else ()),
        ],
        synthetic=launch.session is not None and launch.session.synthetic,
        partial=launch.experiment.partial,
    )


def _choice(scores: Scores) -> Choice:
    """The best trial, valid for all possible values of missing judgments."""
    low, sizes = cluster_sums(scores.low, scores.clusters)
    high, _ = cluster_sums(scores.high, scores.clusters)
    return best_of(low, high, sizes, seed=scores.seed, tested=~scores.withheld)


def _rows(launch: Launch, at: int, scores: Scores, settings: Compare, choice: Choice) -> list[Row]:
    """A row for every trial, compared with trial number `at`."""
    results, metric = launch.results, scores.metric
    means = interval(scores.low, scores.high, scores)
    # If no test can detect a difference, none can exclude a trial.
    undecidable = len(set(scores.clusters)) < TESTABLE_CLUSTERS
    differences = _against(at, scores, settings)
    baseline_mean = _mean(results[at], scores, at)
    return [
        Row(
            name=result.name,
            mean=(mean := _mean(result, scores, n)),
            mean_min=math.fsum(scores.low[n]) / scores.queries,
            mean_max=math.fsum(scores.high[n]) / scores.queries,
            low=float(means.low[n]),
            high=float(means.high[n]),
            difference=_paired_mean(scores, n, at) if not math.isnan(mean + baseline_mean) else math.nan,
            **differences[n]._asdict(),
            p_best=float(choice.p_best[n]),
            may_be_best=undecidable or n == choice.best or float(choice.p_value[n]) > ALPHA,
            losses=losses_at(result, metric),
            context_tokens=result.efficiency["context_tokens"],
            complete=bounded.complete if (bounded := result.bounded(metric)) else scores.queries,
            result=result,
        )
        for n, result in enumerate(results)
    ]


def interval(low: Floats, high: Floats, scores: Scores) -> Intervals:
    """Returns bootstrap intervals of means, from the lower bound of the worst case to the upper bound of the best case.

    `low` and `high` bound the scores, trials by queries, for all possible values of missing judgments.
    """
    worst = cluster_bootstrap(low, scores.clusters, seed=scores.seed)
    best = worst if np.array_equal(low, high) else cluster_bootstrap(high, scores.clusters, seed=scores.seed)
    return worst._replace(high=best.high)


class _Difference(NamedTuple):
    """One trial's difference to the baseline; the fields are those of `Row`."""

    difference_low: float = 0.0
    difference_high: float = 0.0
    alone_low: float = 0.0
    alone_high: float = 0.0
    p: float = math.nan
    p_alone: float = math.nan
    p_holm: float = math.nan
    verdict: Verdict = "baseline"
    no_interval: str = ""
    matters: Matters = ""
    needed: float = math.nan


def _against(at: int, scores: Scores, settings: Compare) -> list[_Difference]:
    """Every trial's difference to trial number `at`, tested as one family of hypotheses."""
    others = [n for n in range(len(scores.low)) if n != at]
    worst, best = (scores.low - scores.high[at])[others], (scores.high - scores.low[at])[others]
    low_sums, sizes = cluster_sums(worst, scores.clusters)
    high_sums, _ = cluster_sums(best, scores.clusters)
    tested = ~(scores.withheld[others] | scores.withheld[at])
    family = paired_differences(Sums(low_sums, high_sums, sizes), seed=scores.seed, tested=tested, level=1 - ALPHA)
    middle = (low_sums + high_sums) / 2
    critical = normal_critical(middle[tested], sizes, seed=scores.seed, level=1 - ALPHA)
    needed = queries_needed(standard_errors(middle, sizes), scores.queries, settings.effect, critical=critical)
    p_holm = holm(family.p)
    made = [_Difference()] * len(scores.low)
    for n, trial in enumerate(others):
        if len(sizes) < TESTABLE_CLUSTERS or not tested[n]:
            why = "too few clusters" if tested[n] else "withheld"
            made[trial] = _refused(why, settings)
            continue
        low, high = _within(float(family.low[n]), float(family.high[n]))
        verdict = _verdict(low, high)
        made[trial] = _Difference(
            low,
            high,
            *_within(float(family.alone_low[n]), float(family.alone_high[n])),
            float(family.adjusted[n]),
            float(family.p[n]),
            float(p_holm[n]),
            verdict,
            _unbounded(bool((low_sums[n] < high_sums[n]).any())) if math.isnan(low) else "",
            _matters(low, high, settings.margin),
            float(needed[n]) if verdict == "cannot tell" and math.isfinite(needed[n]) else math.nan,
        )
    return made


def _unbounded(missing: bool) -> str:
    """The reason why a difference has no bounds."""
    return "missing values" if missing else "too few clusters"


def _refused(why: str, settings: Compare) -> _Difference:
    """A difference without a test."""
    nan, matters = math.nan, _matters(math.nan, math.nan, settings.margin)
    return _Difference(nan, nan, nan, nan, nan, nan, nan, "cannot tell", why, matters)


def _within(low: float, high: float) -> tuple[float, float]:
    """The bounds of an interval, NaN if there are none. Measures are in 0..1, so differences are in -1..1."""
    return (max(low, -1.0), min(high, 1.0)) if math.isfinite(low + high) else (math.nan, math.nan)


def _verdict(low: float, high: float) -> Verdict:
    """The verdict of an interval: better or worse only if it excludes 0."""
    return "better" if low > 0 else "worse" if high < 0 else "cannot tell"


def _matters(low: float, high: float, margin: float) -> Matters:
    if not margin:
        return ""
    if low > margin or high < -margin:
        return "yes"
    return "no" if -margin <= low and high <= margin else "cannot tell"


def _best(choice: Choice, rows: Sequence[Row]) -> Best:
    row = rows[choice.best]
    shift = choice.corrected - row.mean_min
    names = [other.name for other in rows if other.may_be_best]
    return Best(row.name, row.mean, choice.corrected, row.low + shift, row.high + shift, names)


def _mean(result: TrialResult, scores: Scores, at: int) -> float:
    """The mean as reported: over the complete queries if values are missing, NaN if it is withheld."""
    bounded = result.bounded(scores.metric)
    if bounded is not None:
        return bounded.mean
    return math.fsum(scores.low[at]) / scores.queries


def _paired_mean(scores: Scores, trial: int, baseline: int) -> float:
    """The mean difference over the queries that have a value in both trials; NaN if there are none."""
    both = (scores.low[[trial, baseline]] == scores.high[[trial, baseline]]).all(axis=0)
    differences = (scores.low[trial] - scores.low[baseline])[both]
    return math.fsum(differences) / len(differences) if len(differences) else math.nan


def _settings(text: Compare, margin: float | None, effect: float | None, clusters: str | None) -> Compare:
    return replace(
        text,
        margin=text.margin if margin is None else margin,
        effect=text.effect if effect is None else effect,
        clusters=text.clusters if clusters is None else clusters,
    )


def losses_at(result: TrialResult, metric: str) -> dict[str, int]:
    """Returns the counts of evidence items by outcome for a metric: what is selected beyond its cutoff counts as lost.

    The outcome of the cutoff is named `past 1000 tokens` or `below rank 5`.
    """
    lost = result.losses()
    if metric in result.judged:
        return lost
    cut = split_metric(metric)
    at_cutoff = result.scores.get(str(cut._replace(measure="recall")))
    if at_cutoff is None or (cut.k is None and cut.tokens is None):
        return lost
    items = np.array([len(evidence_outcomes) for evidence_outcomes in result.evidence_outcomes])
    within = int(np.rint(np.nan_to_num(at_cutoff) * items).sum())
    outcome = f"past {cut.tokens} tokens" if cut.k is None else f"below rank {cut.k}"
    return {**lost, "found": within, outcome: lost.get("found", 0) - within}


def _judge_notes(launch: Launch, metric: str) -> list[str]:
    if metric not in launch.results[0].judged:
        return []
    notes = []
    short = {r.name: r.judged[metric] for r in launch.results if r.judged[metric].complete < r.judged[metric].total}
    for name, judged in short.items():
        message = "withheld" if judged.withheld else "over those"
        notes.append(f"{name}: {judged.complete} of {judged.total} queries have a value; the mean is {message}")
    if short:
        notes.append("intervals and verdicts hold for all possible values of the missing judgments")
    return [*notes, *notes_on(launch, metric)]


def _capped(launch: Launch, metric: str) -> list[str]:
    """Warnings on trials that select fewer passages than the metric divides by, which limits its maximum."""
    judges = judge_measures(launch.experiment.base.judges)
    if metric in judges:
        _, judge, measure = judges[metric]
        k = judge.k if measure in judge.divided_by_k else None
    else:
        cut = split_metric(metric)
        k = cut.k if cut.measure == "precision" else None
    limits: dict[int, list[str]] = {}
    for result in launch.results if k else ():
        steps = [text for key, text in result.params.items() if key.startswith("selector.") and key.endswith(".k")]
        known = [int(text) for text in (*steps, result.params.get("retriever.depth", "")) if text.isdecimal()]
        if known and min(known) < (k or 0):
            limits.setdefault(min(known), []).append(result.name)
    return [
        f"{metric} divides by {k}, but at most {limit} passages are selected: its maximum is {limit / (k or 1):.3f} "
        f"for {', '.join(names)}"
        for limit, names in limits.items()
    ]


def _ambiguous(asked: Mapping[str, object], count: int) -> str:
    wanted = ", ".join(f"{key}: {value}" for key, value in asked.items())
    return f"{count} trials have {wanted}; the first of them is the baseline"


def _warnings(launch: Launch, metric: str, clusters: int) -> list[str]:
    warnings = [*launch.warnings, *_capped(launch, metric)]
    if clusters < FEWEST_CLUSTERS:
        warnings.append(
            f"no intervals: {plural(clusters, 'cluster')} of queries, at least {FEWEST_CLUSTERS} are needed"
        )
    elif clusters < TESTABLE_CLUSTERS:
        message = f"{clusters} clusters of queries are too few for any difference to reach p {ALPHA:g}: there are only"
        message += f" {2 ** (clusters - 1)} sign patterns; queries about {TESTABLE_CLUSTERS} documents would be enough"
        warnings.append(f"{message}; with `clusters: queries` the results apply to further queries on these documents")
    elif clusters < FEW_CLUSTERS:
        warnings.append(f"only {clusters} clusters of queries: the intervals are approximate")
    judged = metric in launch.results[0].judged
    if chunkings(launch.results) > 1 and (judged or split_metric(metric).k is not None):
        warnings.append(
            f"chunk sizes differ: {metric} compares contexts of different size; use a metric such as recall@1000t"
        )
    return warnings
