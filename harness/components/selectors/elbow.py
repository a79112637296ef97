"""Hits up to the first large drop in score."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from harness.components.component import Positive
from harness.components.roles import Scale, Selector
from harness.components.selectors.cutting import cut, range_problem
from harness.core.records import Hit, Outcome, Query


@dataclass(frozen=True)
class Elbow(Selector):
    """Hits up to the first drop of more than `drop` between neighbours, but at least `min_k` and at most `max_k`.

    If no drop is that large, the first `min_k` or `max_k` hits are kept, as `flat` says.
    """

    needs: ClassVar[tuple[Scale, ...]] = ("unit", "cosine")

    drop: Annotated[float, Field(gt=0)] = 0.1
    min_k: Positive = 3
    max_k: Positive = 50
    flat: Literal["min_k", "max_k"] = "min_k"

    def problem(self) -> str | None:
        """An error message if `min_k` is more than `max_k`."""
        return range_problem(self.min_k, self.max_k)

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """Keep the hits before the first large drop at rank `min_k` or later."""
        for at in range(self.min_k, min(self.max_k, len(hits) - 1) + 1):
            drop = hits[at - 1].score - hits[at].score
            # The tolerance absorbs rounding errors: a drop of exactly `drop` is not more than it.
            if drop > self.drop + 1e-9:
                return cut(hits, at, f"after a drop of {drop:.4g}")
        k = self.min_k if self.flat == "min_k" else self.max_k
        return cut(hits, k, f"no drop above {self.drop:g}: below rank {k}")
