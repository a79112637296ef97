"""One of several near-copies."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from harness.component import Fraction, Selector
from harness.model import Drop, Hit, Outcome, Query

_WORD = re.compile(r"\w{3,}")


@dataclass(frozen=True)
class Dedup(Selector):
    """Drop a hit whose words overlap those of a better hit by a Jaccard index of at least `similarity`.

    Words are lower-cased and longer than two letters. Two chunks without any such word are near-copies only where
    their texts are equal.
    """

    similarity: Fraction = 0.9

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        kept: list[Hit] = []
        dropped: list[Drop] = []
        for hit in hits:
            twin = next((better for better in kept if self._alike(hit.chunk.text, better.chunk.text)), None)
            if twin is None:
                kept.append(hit)
            else:
                dropped.append(Drop(hit, f"near-copy of {twin.chunk.id}"))
        return Outcome(kept, dropped)

    def _alike(self, one: str, other: str) -> bool:
        a, b = _words(one), _words(other)
        # The Jaccard index is at most smaller / larger: most pairs are settled by their sizes.
        if min(len(a), len(b)) < self.similarity * max(len(a), len(b)):
            return False
        if not a and not b:
            return one == other
        shared = len(a & b)
        return shared >= self.similarity * (len(a) + len(b) - shared)


@lru_cache(maxsize=50_000)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))
