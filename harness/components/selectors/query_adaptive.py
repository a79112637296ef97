"""A number of hits chosen by scores and the class of the query."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness.components.component import Fraction, Positive
from harness.components.roles import Scale, Selector
from harness.components.selectors.cutting import adaptive, cut
from harness.components.selectors.wording import mentions
from harness.core.records import Hit, Outcome, Query

FACTUAL = ("what is", "when", "who", "how many")
EXPLORATORY = ("explain", "describe", "overview", "compare")

Parameters = tuple[int, int, float]
"""`min_k`, `max_k` and the threshold."""


@dataclass(frozen=True)
class QueryAdaptive(Selector):
    """Like `adaptive`, with parameters (min_k, max_k, threshold) for each class of query.

    A query is `factual` if it contains "what is", "when", "who" or "how many" and has fewer than `specific_words`
    words; else `exploratory` if it contains "explain", "describe", "overview" or "compare"; else `balanced`. Only whole
    words match.
    """

    needs: ClassVar[tuple[Scale, ...]] = ("unit", "cosine")

    factual: Parameters = (2, 5, 0.80)
    exploratory: Parameters = (5, 15, 0.65)
    balanced: Parameters = (3, 10, 0.70)
    score_drop_ratio: Fraction = 0.8
    specific_words: Positive = 10

    def problem(self) -> str | None:
        """An error message if the `min_k` and `max_k` of a class are not a valid range."""
        for name in ("factual", "exploratory", "balanced"):
            min_k, max_k, _ = getattr(self, name)
            if not 0 <= min_k <= max_k or max_k < 1:
                return f"{name}: expected 0 <= min_k <= max_k, got {min_k} and {max_k}"
        return None

    def query_class(self, text: str) -> str:
        """The class of a query: `factual`, `exploratory` or `balanced`."""
        if mentions(text, FACTUAL) and len(text.split()) < self.specific_words:
            return "factual"
        return "exploratory" if mentions(text, EXPLORATORY) else "balanced"

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """Keep hits as `adaptive` does, with the parameters of the query's class."""
        name = self.query_class(query.text)
        min_k, max_k, threshold = getattr(self, name)
        kept, reason = adaptive(hits, min_k, max_k, threshold, self.score_drop_ratio)
        return cut(hits, kept, f"{name}: {reason}")
