"""Maximal marginal relevance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from harness.components.component import Fraction, Positive
from harness.components.roles import Scale, Selector
from harness.components.selectors.similarity import cosines
from harness.core.records import Drop, Hit, Outcome, Query


@dataclass(frozen=True)
class MMR(Selector):
    """`k` of the first `fetch` hits by maximal marginal relevance (Carbonell & Goldstein, SIGIR 1998).

    Each step chooses the hit with the highest relevance x score - (1 - relevance) x highest cosine to a chosen hit.
    Vectors are those of the index. With `relevance` 1 it equals `top_k`. Scores do not change; hits are ranked in the
    order of choice.
    """

    needs: ClassVar[tuple[Scale, ...]] = ("unit", "cosine")

    k: Positive = 10
    relevance: Fraction = 0.7
    fetch: Positive | None = 50

    @property
    def uses_vectors(self) -> bool:
        """Always true."""
        return True

    def problem(self) -> str | None:
        """An error message if `fetch` is less than `k`."""
        return f"fetch {self.fetch} is less than k {self.k}" if self.fetch is not None and self.fetch < self.k else None

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """Choose `k` hits one by one; ties go to the better rank."""
        fetched = hits[: self.fetch]
        matrix, scores = cosines(fetched), np.array([hit.score for hit in fetched])
        chosen: list[int] = []
        nearest = np.zeros(len(fetched))
        open_ = np.ones(len(fetched), np.bool_)
        while len(chosen) < min(self.k, len(fetched)):
            # The first choice is the highest score, even if `relevance` is 0.
            value = self.relevance * scores - (1 - self.relevance) * nearest if chosen else scores
            best = int(np.argmax(np.where(open_, np.round(value, 9), -np.inf)))
            # Cosines can be negative, so the first chosen hit replaces the initial zeros.
            nearest = np.maximum(nearest, matrix[best]) if chosen else matrix[best]
            chosen.append(best)
            open_[best] = False
        dropped = [
            Drop(hit, f"cosine {nearest[at]:.2f} to a chosen hit") for at, hit in enumerate(fetched) if open_[at]
        ]
        beyond = [Drop(hit, f"beyond the first {self.fetch}") for hit in hits[len(fetched) :]]
        return Outcome([fetched[at] for at in chosen], dropped + beyond)
