"""Higher scores for recent, official and same-category documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness.components.component import Fraction
from harness.components.roles import Scale, Selector, best_hits_first
from harness.components.selectors.dating import age_in_days, now_problem
from harness.core.records import Chunk, Hit, Outcome, Query


@dataclass(frozen=True)
class MetadataBoost(Selector):
    """Add a boost for the document's metadata to each score, up to a total of 1, and sort again.

    `recent` is added for a `date` less than 30 days before `now`, `recent_months` for less than 90; `official` for a
    `source_type` of "official"; `category` if it equals that of the query's metadata. `now` is a date set in the
    experiment, never the current date.
    """

    needs: ClassVar[tuple[Scale, ...]] = ("unit", "cosine")

    now: str
    recent: Fraction = 0.05
    recent_months: Fraction = 0.02
    official: Fraction = 0.03
    category: Fraction = 0.05

    def problem(self) -> str | None:
        """An error message if `now` is not a date."""
        return now_problem(self.now)

    def boost(self, query: Query, chunk: Chunk) -> float:
        """The sum of the boosts for a chunk's document. Raises ConfigError if its `date` is not a date."""
        age = age_in_days(chunk, self.now, self.name())
        boost = 0.0 if age is None else self.recent if age < 30 else self.recent_months if age < 90 else 0.0
        if chunk.metadata.get("source_type") == "official":
            boost += self.official
        wanted = query.metadata.get("category")
        if wanted is not None and chunk.metadata.get("category") == wanted:
            boost += self.category
        return boost

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """Return all hits with boosted scores, best first."""
        boosted = [hit._replace(score=min(1.0, hit.score + self.boost(query, hit.chunk))) for hit in hits]
        return Outcome(best_hits_first(boosted), [])
