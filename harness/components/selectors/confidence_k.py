"""Few where the first hit stands out, many where it does not."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.components.component import Fraction, Positive
from harness.components.roles import Selector
from harness.components.selectors.cutting import cut, range_problem
from harness.core.records import Hit, Outcome, Query


@dataclass(frozen=True)
class ConfidenceK(Selector):
    """The first `min_k` hits where the gap between the first two scores is at least `gap`, else the first `max_k`.

    The gap is relative, (s1 - s2) / (s1 - s_n) with s_n the last of the first `max_k` scores: the share of their whole
    range that lies between the first two. So it means the same for cosines, BM25 and fused scores.
    """

    min_k: Positive = 3
    max_k: Positive = 20
    gap: Fraction = 0.3

    def problem(self) -> str | None:
        return range_problem(self.min_k, self.max_k)

    def confidence(self, hits: Sequence[Hit]) -> float:
        """The relative gap, 0 to 1; 1 where there is only one hit, 0 where all score the same."""
        scores = sorted((hit.score for hit in hits), reverse=True)[: self.max_k]
        if len(scores) < 2:
            return 1.0
        spread = scores[0] - scores[-1]
        return (scores[0] - scores[1]) / spread if spread > 0 else 0.0

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        confidence = self.confidence(hits)
        k = self.min_k if confidence >= self.gap - 1e-9 else self.max_k
        return cut(hits, k, f"gap {confidence:.2f}: below rank {k}")
