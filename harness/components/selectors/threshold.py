"""A minimum score."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.components.roles import Selector
from harness.core.records import Drop, Hit, Outcome, Query


@dataclass(frozen=True)
class Threshold(Selector):
    """Hits with a score of at least `score`; if none is left, the result is empty."""

    score: float = 0.5

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """Drop the hits below the threshold."""
        low = [Drop(hit, f"score {hit.score:.4g} < {self.score:g}") for hit in hits if hit.score < self.score]
        return Outcome([hit for hit in hits if hit.score >= self.score], low)
