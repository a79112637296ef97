"""The best few."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.component import Positive, Selector
from harness.model import Drop, Hit, Outcome, Query


@dataclass(frozen=True)
class TopK(Selector):
    """The first `k` hits of the ranking."""

    k: Positive = 5

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        reason = f"below rank {self.k}"
        return Outcome(list(hits[: self.k]), [Drop(hit, reason) for hit in hits[self.k :]])
