"""Trials against a baseline on the same queries: paired differences with cluster-bootstrap intervals."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.errors import ConfigError, did_you_mean
from harness.experiment import find_baseline
from harness.launch import Launch
from harness.metrics import parse_metric
from harness.model import Floats
from harness.results import TrialResult, resampling_seed
from harness.stats import FEW_CLUSTERS, FEWEST_CLUSTERS, Intervals, cluster_bootstrap
from reports.judging import notes_on

Verdict = Literal["baseline", "better", "worse", "cannot tell"]


@dataclass(frozen=True)
class Row:
    """One trial: its mean and the paired difference to the baseline, each with a 95 % interval (NaN where refused)."""

    name: str
    mean: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float
    verdict: Verdict
    losses: Mapping[str, int]
    context_tokens: float
    complete: int
    """Queries that have a value; fewer than those compared where a judge failed. Intervals then hold in any case."""


@dataclass(frozen=True)
class Comparison:
    """All trials of a launch on one metric, in grid order. `clusters` is the number of independent units of queries."""

    question: str
    metric: str
    baseline: str
    rows: Sequence[Row]
    queries: int
    unanswerable: int
    unmeasured: int
    clusters: int
    warnings: Sequence[str]

    def _repr_html_(self) -> str:
        from reports.tables import html

        return html(self)

    def __str__(self) -> str:
        from reports.tables import text

        return text(self)


def compare(launch: Launch, *, on: str | None = None, baseline: Mapping[str, object] | None = None) -> Comparison:
    """Compare a launch's trials on one metric.

    `on` defaults to the experiment's `compare.on`, else to the first metric at a token budget, since at equal k chunk
    size and context size are confounded. `baseline` gives params of the baseline trial (the first that has them all),
    by default the experiment's. Intervals resample clusters of queries 10,000 times, seeded by the trials'
    fingerprints. Raises ConfigError for an unknown metric or baseline.
    """
    results, settings = launch.results, launch.experiment.compare
    metric = on or settings.on or _default_metric(launch)
    known = [*results[0].scores, *results[0].judged]
    if metric not in known:
        raise ConfigError(
            f"compare: '{metric}' was not scored.{did_you_mean(metric, known)} Scored: {', '.join(known)}"
        )
    at = find_baseline([result.params for result in results], baseline or settings.baseline)
    lows, highs = _bounds(results, metric)
    answerable = ~np.isnan(lows).any(axis=0)
    if not answerable.any():
        raise ConfigError(f"compare: no query has a value of {metric}")
    lows, highs = lows[:, answerable], highs[:, answerable]
    clusters = np.array(results[0].clusters)[answerable]
    seed = resampling_seed(results[0].queries, metric)

    def interval(low: Floats, high: Floats) -> Intervals:
        """The interval that holds whatever is missing: from the worst case's lower to the best case's upper bound."""
        worst = cluster_bootstrap(low, clusters, seed=seed)
        best = worst if np.array_equal(low, high) else cluster_bootstrap(high, clusters, seed=seed)
        return worst._replace(high=best.high)

    judged = metric in results[0].judged
    means = interval(lows, highs)
    differences = interval(lows - highs[at], highs - lows[at])
    unanswerable = sum(not fates for fates in results[0].fates)
    rows = []
    for n, result in enumerate(results):
        mean = result.mean(metric) if judged else math.fsum(lows[n]) / lows.shape[1]
        own = n == at
        low, high = (0.0, 0.0) if own else (float(differences.low[n]), float(differences.high[n]))
        rows.append(
            Row(
                result.name,
                mean,
                float(means.low[n]),
                float(means.high[n]),
                mean - results[at].mean(metric) if judged else float(differences.mean[n]),
                low,
                high,
                "baseline" if own else _verdict(low, high),
                losses_at(result, metric),
                result.efficiency["context_tokens"],
                result.judged[metric].complete if judged else lows.shape[1],
            )
        )
    return Comparison(
        launch.experiment.question,
        metric,
        results[at].name,
        rows,
        lows.shape[1],
        0 if judged else unanswerable,
        int((~answerable).sum()) - (0 if judged else unanswerable),
        means.clusters,
        [*_warnings(launch, metric, means.clusters), *_judge_notes(launch, metric)],
    )


def losses_at(result: TrialResult, metric: str) -> dict[str, int]:
    """The loss ledger as the metric sees it: what was selected but lies beyond the metric's cutoff is lost to that.

    Counts of evidence items by fate; the cutoff's own fate reads `past 1000 tokens` or `below rank 5`.
    """
    lost = result.losses()
    if metric in result.judged:
        return lost
    cut = parse_metric(metric)
    at_cutoff = result.scores.get(str(cut._replace(measure="recall")))
    if at_cutoff is None or (cut.k is None and cut.tokens is None):
        return lost
    items = np.array([len(fates) for fates in result.fates])
    within = int(np.rint(np.nan_to_num(at_cutoff) * items).sum())
    fate = f"past {cut.tokens} tokens" if cut.k is None else f"below rank {cut.k}"
    return {**lost, "found": within, fate: lost.get("found", 0) - within}


def _bounds(results: Sequence[TrialResult], metric: str) -> tuple[Floats, Floats]:
    """Least and greatest value per trial and query; the same but where a judgment is missing."""
    if metric in results[0].judged:
        judged = [result.judged[metric] for result in results]
        return np.array([one.low for one in judged]), np.array([one.high for one in judged])
    scores = np.array([result.scores[metric] for result in results])
    return scores, scores


def _judge_notes(launch: Launch, metric: str) -> list[str]:
    if metric not in launch.results[0].judged:
        return []
    notes = []
    short = {r.name: r.judged[metric] for r in launch.results if r.judged[metric].complete < r.judged[metric].total}
    for name, judged in short.items():
        told = "withheld" if judged.withheld else "over those"
        notes.append(f"{name}: {judged.complete} of {judged.total} queries have a value; the mean is {told}")
    if short:
        notes.append("intervals and verdicts hold whatever the missing judgments would have been")
    return [*notes, *notes_on(launch, metric)]


def _default_metric(launch: Launch) -> str:
    metrics = launch.experiment.metrics
    return next((name for name in metrics if parse_metric(name).tokens is not None), metrics[0])


def _verdict(low: float, high: float) -> Verdict:
    if low > 0:
        return "better"
    return "worse" if high < 0 else "cannot tell"


def _warnings(launch: Launch, metric: str, clusters: int) -> list[str]:
    warnings = list(launch.warnings)
    if clusters < FEWEST_CLUSTERS:
        warnings.append(f"no intervals: {clusters} clusters of queries, at least {FEWEST_CLUSTERS} are needed")
    elif clusters < FEW_CLUSTERS:
        warnings.append(f"{clusters} clusters of queries only: the intervals are rough")
    chunkers = {(result.params["chunker"], result.params.get("chunker.size")) for result in launch.results}
    judged = metric in launch.results[0].judged
    if len(chunkers) > 1 and (judged or parse_metric(metric).k is not None):
        warnings.append(
            f"chunk sizes differ: {metric} compares contexts of different size; see a metric such as recall@1000t"
        )
    if len(launch.results) > 2:
        warnings.append(f"{len(launch.results) - 1} comparisons at 95 % each, not adjusted for their number")
    return warnings
