"""Means of one trial with their intervals, and their curves over rank and token budget."""

import numpy as np

from harness.evaluation.metrics import split_metric
from harness.evaluation.results import TrialResult, resampling_seed
from harness.evaluation.stats import cluster_bootstrap


def mean_interval(result: TrialResult, metric: str) -> tuple[float, float] | None:
    """Return the 95 % cluster-bootstrap interval of a metric's mean; None if no query has a value.

    If values are missing, it covers every value that they could have.
    """
    bounded = result.bounded(metric)
    low, high = (bounded.low, bounded.high) if bounded else (result.scores[metric], result.scores[metric])
    valid = ~np.isnan(low)
    if not valid.any():
        return None
    seed = resampling_seed(result.queries, metric)
    found = cluster_bootstrap(np.array([low[valid], high[valid]]), np.array(result.clusters)[valid], seed=seed)
    return float(found.low[0]), float(found.high[1])


def curves(result: TrialResult) -> dict[str, list[tuple[int, float]]]:
    """Return curves over rank (`recall_vs_k`) and token budget (`recall_vs_tokens`) as sorted `(step, mean)` points."""
    points: dict[str, list[tuple[int, float]]] = {}
    for name in result.scores:
        metric = split_metric(name)
        if metric.k is not None:
            points.setdefault(f"{metric.measure}_vs_k", []).append((metric.k, result.mean(name)))
        elif metric.tokens is not None:
            points.setdefault(f"{metric.measure}_vs_tokens", []).append((metric.tokens, result.mean(name)))
    return {name: sorted(steps) for name, steps in points.items() if len(steps) > 1}
