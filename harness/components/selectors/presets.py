"""Named sequences of selector steps."""

from collections.abc import Mapping
from typing import NamedTuple

from harness.components.roles import BaseReranker, Selector
from harness.components.selectors import MMR, Normalize, Rerank, TopK


class Preset(NamedTuple):
    """How many hits are fetched, how many are kept, and the weight of relevance against diversity (0 to 1)."""

    fetch: int
    k: int
    relevance: float

    def steps(self, reranker: BaseReranker | None) -> tuple[Selector, ...]:
        """Take `fetch` hits, rerank them if `reranker` is set, and choose `k` by MMR on scores scaled to 0..1."""
        reranked = () if reranker is None else (reranker,)
        return (TopK(k=self.fetch), *reranked, Normalize(), MMR(k=self.k, relevance=self.relevance, fetch=None))


PRESETS: Mapping[str, Preset] = {
    "conservative": Preset(100, 5, 0.7),
    "balanced": Preset(50, 10, 0.6),
    "aggressive": Preset(200, 20, 0.5),
}

DEFAULT_RERANKER = Rerank()
"""The reranker of a preset that does not name one."""
