"""All requested metrics for all queries of one trial."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from harness.core.records import Floats, TokenMap
from harness.evaluation.metrics.matching import Items, Passage, Ranking
from harness.evaluation.metrics.measures import JUDGMENT_MEASURES, ORACLE_MEASURES, SPAN_MEASURES
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
    documents = any(needed.by_document for needed in items)
    spans = any(needed.evidence and not needed.by_document for needed in items)
    apart = {*(() if spans else SPAN_MEASURES), *(() if documents else JUDGMENT_MEASURES)}
    for query, (needed, passages) in enumerate(zip(items, rows, strict=True)):
        if not needed.evidence:
            for metric in metrics:
                scores[str(metric)][query] = np.nan if metric.measure in apart else unanswerable
            if not needed.slight and not needed.irrelevant:
                continue
        rankings: dict[int | None, Ranking] = {None: Ranking(passages, needed)}
        for metric in metrics:
            if metric.measure in (SPAN_MEASURES if needed.by_document else JUDGMENT_MEASURES):
                continue
            # ndcg also counts slight evidence, `judged` any judgment; all other measures need relevant evidence.
            if not needed.evidence and metric.measure not in (("ndcg", "judged") if needed.slight else ("judged",)):
                continue
            if metric.measure in ORACLE_MEASURES:
                ranking = Ranking(oracle(needed, metric.measure.startswith("chroma")), needed)
            else:
                if metric.tokens not in rankings and metric.tokens is not None:
                    rankings[metric.tokens] = rankings[None].within(metric.tokens, maps, passages)
                ranking = rankings[metric.tokens]
            value = metric.value(ranking)
            if not math.isfinite(value):
                raise ArithmeticError(f"{metric} of query {query} is {value}")
            scores[str(metric)][query] = value
    return scores
