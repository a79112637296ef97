"""As many as the scores suggest."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness.components.component import Fraction, NotNegative, Positive
from harness.components.roles import Scale, Selector
from harness.components.selectors.cutting import adaptive, cut, range_problem
from harness.core.records import Hit, Outcome, Query


@dataclass(frozen=True)
class Adaptive(Selector):
    """Hits until one scores below `threshold` or falls off a cliff, but at least `min_k` and at most `max_k`.

    A cliff is a score below `score_drop_ratio` times the one before it. Ratios and thresholds need scores of a known
    range: put `normalize` before it where the retriever's are not.
    """

    needs: ClassVar[tuple[Scale, ...]] = ("unit", "cosine")

    min_k: NotNegative = 2
    max_k: Positive = 10
    threshold: float = 0.7
    score_drop_ratio: Fraction = 0.8

    def problem(self) -> str | None:
        return range_problem(self.min_k, self.max_k)

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        return cut(hits, *adaptive(hits, self.min_k, self.max_k, self.threshold, self.score_drop_ratio))
