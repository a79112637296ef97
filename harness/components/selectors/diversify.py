"""Diverse hits from many documents."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.components.component import Fraction, Positive
from harness.components.roles import Selector
from harness.components.selectors.similarity import By, cosines, nearest
from harness.core.records import Drop, Hit, Outcome, Query


@dataclass(frozen=True)
class Diversify(Selector):
    """At most `per_document` hits per document, each with a diversity of at least `threshold` from all better ones.

    Diversity is 1 - the highest similarity to a kept hit: the Jaccard index of words longer than two letters, or with
    `by: vectors` the cosine.
    """

    per_document: Positive | None = 3
    threshold: Fraction = 0.3
    by: By = "words"

    @property
    def uses_vectors(self) -> bool:
        """Whether similarity is computed from vectors."""
        return self.by == "vectors"

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """Keep hits in rank order that differ enough from all hits kept before them."""
        matrix = cosines(hits) if self.by == "vectors" else None
        kept: list[int] = []
        dropped: list[Drop] = []
        of_document: dict[str, int] = {}
        for at, hit in enumerate(hits):
            doc = hit.chunk.doc
            if self.per_document is not None and of_document.get(doc, 0) >= self.per_document:
                dropped.append(Drop(hit, f"{self.per_document} of {doc} already"))
                continue
            similarity, other = nearest(hits, at, kept, matrix)
            if other is not None and 1 - similarity < self.threshold - 1e-9:
                dropped.append(Drop(hit, f"diversity {1 - similarity:.2f} from {hits[other].chunk.id}"))
                continue
            of_document[doc] = of_document.get(doc, 0) + 1
            kept.append(at)
        return Outcome([hits[at] for at in kept], dropped)
