"""Few hits if the first one has a clear lead, otherwise many."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.components.component import Fraction, Positive
from harness.components.roles import Selector
from harness.components.selectors.cutting import cut, range_problem
from harness.core.records import Hit, Outcome, Query


@dataclass(frozen=True)
class ConfidenceK(Selector):
    """The first `min_k` hits if the gap between the first two scores is at least `gap`, else the first `max_k`.

    The gap is relative, (s1 - s2) / (s1 - s_n), where s_n is the last of the first `max_k` scores: the fraction of
    their range that is between the first two. So it means the same for cosines, BM25 and fused scores.
    """

    min_k: Positive = 3
    max_k: Positive = 20
    gap: Fraction = 0.3

    def problem(self) -> str | None:
        """An error message if `min_k` is more than `max_k`."""
        return range_problem(self.min_k, self.max_k)

    def confidence(self, hits: Sequence[Hit]) -> float:
        """The relative gap, 0 to 1; 1 if there are fewer than two hits, 0 if all scores are equal."""
        scores = sorted((hit.score for hit in hits), reverse=True)[: self.max_k]
        if len(scores) < 2:
            return 1.0
        spread = scores[0] - scores[-1]
        return (scores[0] - scores[1]) / spread if spread > 0 else 0.0

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """Keep the first `min_k` or `max_k` hits, depending on the gap."""
        confidence = self.confidence(hits)
        k = self.min_k if confidence >= self.gap - 1e-9 else self.max_k
        return cut(hits, k, f"gap {confidence:.2f}: below rank {k}")
