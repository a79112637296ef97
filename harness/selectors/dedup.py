"""One of several near-copies."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

from pydantic import Field

from harness.component import Selector
from harness.model import Drop, Hit, Outcome, Query

_WORD = re.compile(r"\w{3,}")


@dataclass(frozen=True)
class Dedup(Selector):
    """Drop a hit whose words overlap those of a better hit by a Jaccard index of at least `similarity`.

    Words are lower-cased and longer than two letters. Two chunks without any such word are near-copies only where
    their texts are equal.
    """

    similarity: Annotated[float, Field(gt=0, le=1)] = 0.9

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        kept: list[Hit] = []
        dropped: list[Drop] = []
        # Sets with a Jaccard index of at least s share a word among their first n - ceil(s n) + 1 in any common order
        # (prefix filtering; Chaudhuri, Ganti & Kaushik, ICDE 2006). Only kept hits under such a word are compared.
        by_word: dict[str, list[int]] = {}
        for hit in hits:
            words = _words(hit.chunk.text)
            prefix = words[: len(words) - math.ceil(self.similarity * len(words) - 1e-9) + 1] or (hit.chunk.text,)
            near = sorted({number for word in prefix for number in by_word.get(word, ())})
            text, limit = hit.chunk.text, self.similarity - 1e-9
            twin = next((kept[number] for number in near if _jaccard(text, kept[number].chunk.text) >= limit), None)
            if twin is not None:
                dropped.append(Drop(hit, f"near-copy of {twin.chunk.id}"))
                continue
            for word in prefix:
                by_word.setdefault(word, []).append(len(kept))
            kept.append(hit)
        return Outcome(kept, dropped)


@lru_cache(maxsize=200_000)
def _jaccard(one: str, other: str) -> float:
    """The Jaccard index of two texts' words. Many queries and trials meet the same pair of chunks."""
    a, b = _word_set(one), _word_set(other)
    if not a or not b:
        return float(one == other)
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared)


@lru_cache(maxsize=50_000)
def _word_set(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


@lru_cache(maxsize=50_000)
def _words(text: str) -> tuple[str, ...]:
    """The distinct words of a text, long ones first: they are rare, so that few hits share a prefix."""
    return tuple(sorted(_word_set(text), key=lambda word: (-len(word), word)))
