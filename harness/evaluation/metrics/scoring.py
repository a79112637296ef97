"""All requested metrics for all queries of one trial."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from harness.core.records import Floats, TokenMap
from harness.evaluation.metrics.matching import Items, Passage, Ranking
from harness.evaluation.metrics.measures import MEASURES, Measure
from harness.evaluation.metrics.names import Metric

Oracle = Callable[[Items, bool], list[Passage]]
"""Returns all chunks that share a character with the evidence; with True, also chunks that only touch it."""


def score_queries(
    metrics: Sequence[Metric],
    items: Sequence[Items],
    rows: Sequence[Sequence[Passage]],
    maps: Mapping[str, TokenMap],
    oracle: Oracle,
    *,
    unanswerable: float = math.nan,
) -> dict[str, Floats]:
    """One value per query and metric: arrays of shape (queries,), keyed by metric name.

    A query without relevant evidence gets the value `unanswerable`, because there is nothing to recall; `judged`, which
    is not about relevance, is computed all the same. A query with evidence but an empty selection is scored, usually as
    0. Character measures are NaN for document-level evidence; measures of judgments are NaN for span evidence.
    Raises ArithmeticError if a value is not finite.
    """
    scores = {str(metric): np.full(len(items), np.nan) for metric in metrics}
    known = [(metric, str(metric), MEASURES[metric.measure]) for metric in metrics]
    present = {
        "any": True,
        "documents": any(needed.by_document for needed in items),
        "spans": any(needed.evidence and not needed.by_document for needed in items),
    }
    for query, (needed, passages) in enumerate(zip(items, rows, strict=True)):
        if not needed.evidence:
            for _, name, measure in known:
                scores[name][query] = unanswerable if present[measure.evidence] else np.nan
            if not needed.slight and not needed.irrelevant:
                continue
        rankings: dict[int | None, Ranking] = {None: Ranking(passages, needed)}
        other = "spans" if needed.by_document else "documents"
        for metric, name, measure in known:
            if measure.evidence == other or not (needed.evidence or _counts(measure, needed)):
                continue
            if measure.oracle != "no":
                ranking = Ranking(oracle(needed, measure.oracle == "touching"), needed)
            else:
                if metric.tokens not in rankings and metric.tokens is not None:
                    rankings[metric.tokens] = rankings[None].within(metric.tokens, maps, passages)
                ranking = rankings[metric.tokens]
            value = metric.value(ranking)
            if not math.isfinite(value):
                raise ArithmeticError(f"{metric} of query {query} is {value}")
            scores[name][query] = value
    return scores


def _counts(measure: Measure, needed: Items) -> bool:
    """Whether a measure has a value for a query without relevant evidence."""
    return measure.counts == "judged" or (measure.counts == "slight" and bool(needed.slight))
