"""Removal of near-duplicates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

from pydantic import Field

from harness.components.roles import Selector
from harness.components.selectors.similarity import By, cosines, jaccard, word_set
from harness.core.records import Drop, Hit, Outcome, Query


@dataclass(frozen=True)
class Dedup(Selector):
    """Drop a hit whose similarity to a better one, the Jaccard index of words or the cosine of vectors, is at least
    `similarity`.

    Words are lower-cased and longer than two letters. Two chunks without any such word are near-duplicates only if
    their texts are equal.
    """

    similarity: Annotated[float, Field(gt=0, le=1)] = 0.9
    by: By = "words"

    @property
    def uses_vectors(self) -> bool:
        """Whether similarity is computed from vectors."""
        return self.by == "vectors"

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """Keep each hit that is no near-duplicate of a hit kept before it."""
        return self._by_vectors(hits) if self.by == "vectors" else self._by_words(hits)

    def _by_vectors(self, hits: Sequence[Hit]) -> Outcome:
        matrix = cosines(hits)
        kept: list[int] = []
        dropped: list[Drop] = []
        for at, hit in enumerate(hits):
            near_duplicate = next((other for other in kept if matrix[at, other] >= self.similarity - 1e-9), None)
            if near_duplicate is None:
                kept.append(at)
            else:
                dropped.append(Drop(hit, f"near-duplicate of {hits[near_duplicate].chunk.id}"))
        return Outcome([hits[at] for at in kept], dropped)

    def _by_words(self, hits: Sequence[Hit]) -> Outcome:
        kept: list[Hit] = []
        dropped: list[Drop] = []
        # Sets with a Jaccard index of at least s share a word among their first n - ceil(s n) + 1 in any common order
        # (prefix filtering; Chaudhuri, Ganti & Kaushik, ICDE 2006). Only kept hits that share such a word are compared.
        by_word: dict[str, list[int]] = {}
        for hit in hits:
            words = _words(hit.chunk.text)
            prefix = words[: len(words) - math.ceil(self.similarity * len(words) - 1e-9) + 1] or (hit.chunk.text,)
            near = sorted({number for word in prefix for number in by_word.get(word, ())})
            text, limit = hit.chunk.text, self.similarity - 1e-9
            near_duplicate = next(
                (kept[number] for number in near if jaccard(text, kept[number].chunk.text) >= limit), None
            )
            if near_duplicate is not None:
                dropped.append(Drop(hit, f"near-duplicate of {near_duplicate.chunk.id}"))
                continue
            for word in prefix:
                by_word.setdefault(word, []).append(len(kept))
            kept.append(hit)
        return Outcome(kept, dropped)


@lru_cache(maxsize=50_000)
def _words(text: str) -> tuple[str, ...]:
    """The distinct words of a text, long ones first: these are rare, so few hits share a prefix."""
    return tuple(sorted(word_set(text), key=lambda word: (-len(word), word)))
