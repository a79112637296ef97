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
from harness.results import TrialResult, resampling_seed
from harness.stats import FEW_CLUSTERS, FEWEST_CLUSTERS, cluster_bootstrap

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
    if metric not in results[0].scores:
        known = list(results[0].scores)
        raise ConfigError(
            f"compare: '{metric}' was not scored.{did_you_mean(metric, known)} Scored: {', '.join(known)}"
        )
    at = find_baseline([result.params for result in results], baseline or settings.baseline)
    scores = np.array([result.scores[metric] for result in results])
    answerable = ~np.isnan(scores).any(axis=0)
    if not answerable.any():
        raise ConfigError(f"compare: no query has a value of {metric}")
    scores = scores[:, answerable]
    clusters = np.array(results[0].clusters)[answerable]
    seed = resampling_seed(results[0].queries, metric)
    means = cluster_bootstrap(scores, clusters, seed=seed)
    differences = cluster_bootstrap(scores - scores[at], clusters, seed=seed)
    unanswerable = sum(not fates for fates in results[0].fates)
    rows = [
        Row(
            result.name,
            math.fsum(scores[n]) / scores.shape[1],
            float(means.low[n]),
            float(means.high[n]),
            float(differences.mean[n]),
            float(differences.low[n]),
            float(differences.high[n]),
            "baseline" if n == at else _verdict(float(differences.low[n]), float(differences.high[n])),
            losses_at(result, metric),
            result.efficiency["context_tokens"],
        )
        for n, result in enumerate(results)
    ]
    return Comparison(
        launch.experiment.question,
        metric,
        results[at].name,
        rows,
        scores.shape[1],
        unanswerable,
        int((~answerable).sum()) - unanswerable,
        means.clusters,
        _warnings(launch, metric, means.clusters),
    )


def losses_at(result: TrialResult, metric: str) -> dict[str, int]:
    """The loss ledger as the metric sees it: what was selected but lies beyond the metric's cutoff is lost to that.

    Counts of evidence items by fate; the cutoff's own fate reads `past 1000 tokens` or `below rank 5`.
    """
    lost = result.losses()
    cut = parse_metric(metric)
    at_cutoff = result.scores.get(str(cut._replace(measure="recall")))
    if at_cutoff is None or (cut.k is None and cut.tokens is None):
        return lost
    items = np.array([len(fates) for fates in result.fates])
    within = int(np.rint(np.nan_to_num(at_cutoff) * items).sum())
    fate = f"past {cut.tokens} tokens" if cut.k is None else f"below rank {cut.k}"
    return {**lost, "found": within, fate: lost.get("found", 0) - within}


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
    if len(chunkers) > 1 and parse_metric(metric).k is not None:
        warnings.append(
            f"chunk sizes differ: {metric} compares contexts of different size; see a metric such as recall@1000t"
        )
    if len(launch.results) > 2:
        warnings.append(f"{len(launch.results) - 1} comparisons at 95 % each, not adjusted for their number")
    return warnings
