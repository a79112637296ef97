"""A fixed number of hits."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.components.component import Positive
from harness.components.roles import Selector
from harness.components.selectors.cutting import cut
from harness.core.records import Hit, Outcome, Query


@dataclass(frozen=True)
class TopK(Selector):
    """The first `k` hits of the ranking."""

    k: Positive = 5

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """Keep the first `k` hits."""
        return cut(hits, self.k, f"below rank {self.k}")
