"""Selector steps that go together, by name."""

from collections.abc import Mapping
from typing import NamedTuple

from harness.components.roles import Reranker, Selector
from harness.components.selectors import MMR, Normalize, Rerank, TopK


class Preset(NamedTuple):
    """How many hits are taken, how many of them are kept, and how much relevance weighs against variety."""

    fetch: int
    k: int
    relevance: float

    def steps(self, reranker: Reranker | None) -> tuple[Selector, ...]:
        """Take `fetch` hits, rerank them, and choose `k` by maximal marginal relevance on the scores scaled to 0..1."""
        reranked = () if reranker is None else (reranker,)
        return (TopK(k=self.fetch), *reranked, Normalize(), MMR(k=self.k, relevance=self.relevance, fetch=None))


PRESETS: Mapping[str, Preset] = {
    "conservative": Preset(100, 5, 0.7),
    "balanced": Preset(50, 10, 0.6),
    "aggressive": Preset(200, 20, 0.5),
}

DEFAULT_RERANKER = Rerank()
"""The reranker of a preset that names none."""
