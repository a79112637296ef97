"""Bounds of the scores of another system: where it did not answer, or returned passages that cannot be located."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from harness.core.records import Floats
from harness.evaluation.metrics import split_metric
from harness.evaluation.metrics.matching import Passage
from harness.evaluation.metrics.measures import MEASURES
from harness.evaluation.metrics.names import Metric
from harness.running.stages.locate import UNMAPPED

LOW, HIGH = "low:", "high:"
"""What the names of the arrays of bounds in a score artifact begin with."""


def bounds(
    values: Mapping[str, Floats], kept: Sequence[Sequence[Passage]], failed: Collection[int]
) -> dict[str, Floats]:
    """Return arrays of scores and of their bounds, (queries,); empty if all scores are certain.

    A query that the system did not answer has no score; it could be anything from 0 to 1. An unmapped passage within a
    metric's cutoff counts as no evidence, but may be all of it: the score is the lower bound, and 1 the upper one.
    Metrics of the user's own, whose range is not known, only lack a score for queries that were not answered.
    """
    unmapped = {at: row for at, row in enumerate(kept) if any(one.doc.startswith(UNMAPPED) for one in row)}
    found: dict[str, Floats] = {}
    for name, column in values.items() if failed or unmapped else ():
        low, high, cut = column.copy(), column.copy(), split_metric(name)
        within = [at for at, row in unmapped.items() if _may_count(row, cut)] if cut.measure in MEASURES else []
        high[within] = np.where(np.isnan(column[within]), np.nan, 1.0)
        score = column.copy()
        for at in failed:
            known = cut.measure in MEASURES and not np.isnan(column[at])
            low[at], high[at], score[at] = (0.0, 1.0, np.nan) if known else (np.nan, np.nan, np.nan)
        found |= {name: score, f"{LOW}{name}": low, f"{HIGH}{name}": high}
    return found


def _may_count(row: Sequence[Passage], cut: Metric) -> bool:
    """Whether an unmapped passage is within the cutoff of a metric."""
    spent = 0
    for rank, passage in enumerate(row, 1):
        if (cut.k is not None and rank > cut.k) or (cut.tokens is not None and spent >= cut.tokens):
            return False
        if passage.doc.startswith(UNMAPPED):
            return True
        spent += passage.tokens + passage.context_tokens
    return False
