"""The best few."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.component import Positive, Selector
from harness.model import Hit, Outcome, Query
from harness.selectors.cutting import cut


@dataclass(frozen=True)
class TopK(Selector):
    """The first `k` hits of the ranking."""

    k: Positive = 5

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        return cut(hits, self.k, f"below rank {self.k}")
