"""A number of hits chosen by their scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness.components.component import Fraction, NotNegative, Positive
from harness.components.roles import Scale, Selector
from harness.components.selectors.cutting import adaptive, cut, range_problem
from harness.core.records import Hit, Outcome, Query


@dataclass(frozen=True)
class Adaptive(Selector):
    """Hits until a score is below `threshold` or drops sharply, but at least `min_k` and at most `max_k`.

    A sharp drop is a score below `score_drop_ratio` times the previous one. Ratios and thresholds need scores of a
    known range: put `normalize` before this step if the retriever's scores have none.
    """

    needs: ClassVar[tuple[Scale, ...]] = ("unit", "cosine")

    min_k: NotNegative = 2
    max_k: Positive = 10
    threshold: float = 0.7
    score_drop_ratio: Fraction = 0.8

    def problem(self) -> str | None:
        """An error message if `min_k` is more than `max_k`."""
        return range_problem(self.min_k, self.max_k)

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """Keep hits up to the first one that ends the ranking; all others are dropped for its reason."""
        return cut(hits, *adaptive(hits, self.min_k, self.max_k, self.threshold, self.score_drop_ratio))
