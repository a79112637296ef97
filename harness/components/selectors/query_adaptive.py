"""As many as the kind of question suggests."""

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
    """`adaptive` with parameters (min_k, max_k, threshold) by class of query.

    A query is `factual` that has one of "what is", "when", "who", "how many" and fewer than `specific_words` words;
    else `exploratory` with "explain", "describe", "overview" or "compare"; else `balanced`. Whole words count.
    """

    needs: ClassVar[tuple[Scale, ...]] = ("unit", "cosine")

    factual: Parameters = (2, 5, 0.80)
    exploratory: Parameters = (5, 15, 0.65)
    balanced: Parameters = (3, 10, 0.70)
    score_drop_ratio: Fraction = 0.8
    specific_words: Positive = 10

    def problem(self) -> str | None:
        for name in ("factual", "exploratory", "balanced"):
            min_k, max_k, _ = getattr(self, name)
            if not 0 <= min_k <= max_k or max_k < 1:
                return f"{name}: expected 0 <= min_k <= max_k, got {min_k} and {max_k}"
        return None

    def query_class(self, text: str) -> str:
        """`factual`, `exploratory` or `balanced`."""
        if mentions(text, FACTUAL) and len(text.split()) < self.specific_words:
            return "factual"
        return "exploratory" if mentions(text, EXPLORATORY) else "balanced"

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        name = self.query_class(query.text)
        min_k, max_k, threshold = getattr(self, name)
        kept, reason = adaptive(hits, min_k, max_k, threshold, self.score_drop_ratio)
        return cut(hits, kept, f"{name}: {reason}")
