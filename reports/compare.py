"""Comparison of trials with a baseline and with the best trial, paired over the same queries."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

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
    best_of,
    cluster_bootstrap,
    cluster_sums,
    design_effect,
)
from harness.experiment.params import matching
from harness.experiment.settings import Compare
from harness.running.launch_result import Launch
from harness.running.primary_metric import Scores, chunkings, primary_metric, scores_of
from reports.comparison import Against, Best, Comparison
from reports.comparison_row import Row
from reports.differences import Difference, differences
from reports.judge_notes import notes_on
from reports.system_notes import system_notes


def compare(
    launch: Launch,
    *,
    on: str | None = None,
    baseline: Mapping[str, object] | Sequence[Mapping[str, object]] | None = None,
    margin: float | None = None,
    effect: float | None = None,
    clusters: str | None = None,
) -> Comparison:
    """Compares a launch's trials on one metric.

    `on` defaults to the experiment's `compare.on`; else to the first metric at a token budget, because at equal k chunk
    size and context size are confounded; else to recall@1000t if the chunkers differ. `baseline` gives params of the
    baseline trial (the first that has them all), or of several, of which the first is that of the table. The others
    default to the settings of the experiment. Verdicts follow from simultaneous 95 % intervals: 5 % is the probability
    that any verdict, about any baseline, is wrong.

    Raises ConfigError for an unknown metric or baseline.
    """
    settings = _settings(launch.experiment.compare, margin, effect, clusters)
    results = launch.results
    metric = on or primary_metric(launch.experiment, results)
    params = [result.params for result in results]
    asked = _listed(baseline) or settings.baselines
    found = [matching(params, wanted, "compare.baseline") for wanted in asked]
    baselines = list(dict.fromkeys(trials[0] for trials in found))
    scores = scores_of(results, metric, settings.clusters)
    sizes = cluster_sums(scores.low, scores.clusters)[1]
    choice = _choice(scores)
    rows, *others = _rows(launch, baselines, scores, settings, choice)
    unanswerable = _unanswerable(results[0], scores)
    return Comparison(
        question=launch.experiment.question,
        metric=metric,
        baseline=results[baselines[0]].name,
        rows=rows,
        best=_best(choice, rows),
        queries=scores.queries,
        unanswerable=unanswerable,
        unmeasured=len(results[0].queries) - scores.queries - unanswerable,
        clusters=len(sizes),
        clusters_by=settings.clusters,
        design_effect=_design_effect(scores),
        margin=settings.margin,
        effect=settings.effect,
        final=launch.session is not None and launch.session.final,
        warnings=[
            *_notes(launch, metric, len(sizes)),
            *(_ambiguous(*pair) for pair in zip(asked, map(len, found), strict=True) if pair[0] and pair[1] > 1),
        ],
        synthetic=launch.session is not None and launch.session.synthetic,
        partial=launch.experiment.partial,
        against=[Against(results[at].name, given) for at, given in zip(baselines[1:], others, strict=True)],
    )


def _listed(baseline: Mapping[str, object] | Sequence[Mapping[str, object]] | None) -> Sequence[Mapping[str, object]]:
    if isinstance(baseline, Mapping):
        return [baseline] if baseline else []  # none is named on the command line
    return baseline or []


def _unanswerable(result: TrialResult, scores: Scores) -> int:
    """The number of queries that have no value because they have no evidence."""
    if scores.metric in result.judged:
        return 0
    measured = set(scores.index)
    return sum(not outcomes and at not in measured for at, outcomes in enumerate(result.evidence_outcomes))


def _notes(launch: Launch, metric: str, clusters: int) -> list[str]:
    return [*_warnings(launch, metric, clusters), *_judge_notes(launch, metric), *system_notes(launch, metric)]


def _design_effect(scores: Scores) -> float:
    """The median over the trials; NaN if there is none."""
    effects = design_effect(scores.low, scores.clusters)
    known = effects[~np.isnan(effects)]
    return float(np.median(known)) if len(known) else math.nan


def _choice(scores: Scores) -> Choice:
    """The best trial, valid for all possible values of missing judgments."""
    low, sizes = cluster_sums(scores.low, scores.clusters)
    high, _ = cluster_sums(scores.high, scores.clusters)
    return best_of(low, high, sizes, seed=scores.seed, tested=~scores.withheld)


def _rows(
    launch: Launch, baselines: Sequence[int], scores: Scores, settings: Compare, choice: Choice
) -> list[list[Row]]:
    """For each of the baselines, given by number, a row for every trial."""
    results, metric = launch.results, scores.metric
    means = interval(scores.low, scores.high, scores)
    # If no test can detect a difference, none can exclude a trial.
    undecidable = len(set(scores.clusters)) < TESTABLE_CLUSTERS
    reported = [_mean(result, scores, n) for n, result in enumerate(results)]

    def row(n: int, result: TrialResult, at: int, found: Difference) -> Row:
        return Row(
            name=result.name,
            mean=reported[n],
            mean_min=math.fsum(scores.low[n]) / scores.queries,
            mean_max=math.fsum(scores.high[n]) / scores.queries,
            low=float(means.low[n]),
            high=float(means.high[n]),
            difference=_paired_mean(scores, n, at) if not math.isnan(reported[n] + reported[at]) else math.nan,
            **found._asdict(),
            p_best=float(choice.p_best[n]),
            may_be_best=undecidable or n == choice.best or float(choice.p_value[n]) > ALPHA,
            losses=losses_at(result, metric),
            context_tokens=result.efficiency["context_tokens"],
            complete=bounded.complete if (bounded := result.bounded(metric)) else scores.queries,
            result=result,
        )

    every = zip(baselines, differences(baselines, scores, settings), strict=True)
    return [[row(n, result, at, found[n]) for n, result in enumerate(results)] for at, found in every]


def interval(low: Floats, high: Floats, scores: Scores) -> Intervals:
    """Returns bootstrap intervals of means, from the lower bound of the worst case to the upper bound of the best case.

    `low` and `high` bound the scores, trials by queries, for all possible values of missing judgments.
    """
    worst = cluster_bootstrap(low, scores.clusters, seed=scores.seed)
    best = worst if np.array_equal(low, high) else cluster_bootstrap(high, scores.clusters, seed=scores.seed)
    return worst._replace(high=best.high)


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
