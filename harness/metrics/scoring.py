"""All requested metrics for all queries of one trial."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from harness.metrics.matching import Items, Passage, Ranking
from harness.metrics.measures import MEASURES, ORACLE_MEASURES, SPAN_MEASURES
from harness.metrics.names import Metric
from harness.model import Floats, TokenMap

Oracle = Callable[[Items, bool], list[Passage]]
"""All chunks that share a character with the evidence; with True, also those that merely touch it."""


def score_queries(
    metrics: Sequence[Metric],
    items: Sequence[Items],
    rows: Sequence[Sequence[Passage]],
    maps: Mapping[str, TokenMap],
    oracle: Oracle,
) -> dict[str, Floats]:
    """One value per query and metric, each array of shape (queries,), keyed by the metric's name.

    A query without evidence has no value (NaN): there is nothing to recall. A query with evidence and an empty
    selection has one, usually 0. Measures of characters have no value on document evidence.
    """
    scores = {str(metric): np.full(len(items), np.nan) for metric in metrics}
    for query, (needed, passages) in enumerate(zip(items, rows, strict=True)):
        if not needed.evidence:
            continue
        rankings: dict[int | None, Ranking] = {None: Ranking(passages, needed)}
        for metric in metrics:
            if needed.by_document and metric.measure in SPAN_MEASURES:
                continue
            if metric.measure in ORACLE_MEASURES:
                ranking = Ranking(oracle(needed, metric.measure.startswith("chroma")), needed)
            else:
                if metric.tokens not in rankings and metric.tokens is not None:
                    rankings[metric.tokens] = rankings[None].within(metric.tokens, maps, passages)
                ranking = rankings[metric.tokens]
            value = MEASURES[metric.measure](ranking, metric.k)
            if not math.isfinite(value):
                raise ArithmeticError(f"{metric} of query {query} is {value}")
            scores[str(metric)][query] = value
    return scores
