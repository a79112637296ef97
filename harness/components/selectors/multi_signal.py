"""A weighted mean of several relevance signals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import numpy as np
from pydantic import Field

from harness.components.roles import Scale, Selector, best_hits_first
from harness.components.score_scaling import min_max
from harness.components.selectors.dating import age_in_days, now_problem
from harness.components.text_analysis import Analyzer
from harness.core.records import Floats, Hit, Outcome, Query

Weight = Annotated[float, Field(ge=0)]


@dataclass(frozen=True)
class MultiSignal(Selector):
    """Rank by a weighted mean of signals, each scaled to 0..1 over the query's hits (all equal: 1).

    `semantic`: the score so far. `keyword`: the idf-weighted fraction of the query's stems that the chunk contains,
    with idf = ln(1 + (n - df + 0.5) / (df + 0.5)) over the n hits. `recency`: 0.5 ^ (age / half_life), with the age in
    days before `now`, 0 without a `date`. `authority`: the document's `authority` (0 to 1), else 1 if its `source_type`
    is "official" and 0.5 if not.
    """

    now: str
    semantic: Weight = 0.5
    keyword: Weight = 0.2
    recency: Weight = 0.15
    authority: Weight = 0.15
    half_life: Annotated[float, Field(gt=0)] = 90.0

    def problem(self) -> str | None:
        """An error message if all weights are 0 or `now` is not a date."""
        if self.semantic + self.keyword + self.recency + self.authority <= 0:
            return "all weights are 0"
        return now_problem(self.now)

    def scale(self, before: Scale) -> Scale:
        """Always `unit`."""
        return "unit"

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """Return all hits with the new scores, best first. Raises ConfigError if a `date` is not a date."""
        if not hits:
            return Outcome([], [])
        signals = (
            (self.semantic, np.array([hit.score for hit in hits], np.float64)),
            (self.keyword, keyword_shares(query.text, [hit.chunk.text for hit in hits])),
            (self.recency, np.array([self._recency(hit) for hit in hits])),
            (self.authority, np.array([_authority(hit) for hit in hits])),
        )
        weights = math.fsum(weight for weight, _ in signals)
        total = sum((weight / weights * min_max(values) for weight, values in signals), np.zeros(len(hits)))
        rescored = [hit._replace(score=float(score)) for hit, score in zip(hits, total, strict=True)]
        return Outcome(best_hits_first(rescored), [])

    def _recency(self, hit: Hit) -> float:
        age = age_in_days(hit.chunk, self.now, self.name())
        return 0.0 if age is None else float(0.5 ** (age / self.half_life))


def _authority(hit: Hit) -> float:
    given = hit.chunk.metadata.get("authority")
    if isinstance(given, int | float) and not isinstance(given, bool):
        return min(1.0, max(0.0, float(given)))
    return 1.0 if hit.chunk.metadata.get("source_type") == "official" else 0.5


def keyword_shares(query: str, texts: Sequence[str]) -> Floats:
    """The fraction of the query's stems that each text contains, weighted by idf over the texts, (texts,)."""
    wanted = _stems(query)
    found = [_stems(text) for text in texts]
    held = {stem: sum(stem in words for words in found) for stem in sorted(wanted)}
    n = len(texts)
    idf = {stem: math.log1p((n - count + 0.5) / (count + 0.5)) for stem, count in held.items()}
    total = math.fsum(idf.values())
    return np.array(
        [math.fsum(idf[stem] for stem in idf if stem in words) / total if total else 0.0 for words in found]
    )


@lru_cache(maxsize=50_000)
def _stems(text: str) -> frozenset[str]:
    return frozenset(Analyzer("porter", "lucene")(text))
