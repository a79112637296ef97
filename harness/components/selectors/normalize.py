"""Rescaling of scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.components.roles import Scale, Selector
from harness.components.score_scaling import min_max, rank_scores, z_scores
from harness.core.records import Hit, Outcome, Query

_METHODS = {"min_max": min_max, "z_score": z_scores, "rank": rank_scores}


@dataclass(frozen=True)
class Normalize(Selector):
    """Rescale each query's scores: `min_max` to 0..1 (all equal: 1), `z_score`, or `rank` (1 for the best, down to
    1/n).

    No hit is dropped and the order does not change. After `min_max` and `rank`, steps that need scores of a known range
    can follow.
    """

    method: Literal["min_max", "z_score", "rank"] = "min_max"

    def scale(self, before: Scale) -> Scale:
        """`raw` after `z_score`, else `unit`."""
        return "raw" if self.method == "z_score" else "unit"

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """Return all hits with rescaled scores, in the same order."""
        if not hits:
            return Outcome([], [])
        scores = _METHODS[self.method](np.array([hit.score for hit in hits], np.float64))
        return Outcome([hit._replace(score=float(score)) for hit, score in zip(hits, scores, strict=True)], [])
