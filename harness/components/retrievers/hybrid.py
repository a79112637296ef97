"""Hybrid search: dense and BM25 rankings, fused."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pydantic import Field

from harness.components.component import Fraction, Positive
from harness.components.retrievers.bm25 import BM25
from harness.components.retrievers.dense import Dense
from harness.components.retrievers.fusing import reciprocal_ranks, weighted_sum
from harness.components.roles import Fusion, FusionContext, Retriever, Scale
from harness.components.score_scaling import min_max
from harness.core.rankings import Row, best_first
from harness.core.records import Floats, Ints


@dataclass(frozen=True)
class Hybrid(Fusion):
    """Dense and BM25 rankings, each at least `depth` deep, merged by reciprocal ranks or a weighted sum of scores.

    `rrf`: sum of weight / (c + rank), Cormack, Clarke & Büttcher, SIGIR 2009. `weighted`: scores of each ranking scaled
    to 0..1 (all equal: 1), then summed with their weights. The dense ranking has weight `weight`, BM25 1 - `weight`.
    """

    depth: Positive = 50
    fusion: Literal["rrf", "weighted"] = "rrf"
    weight: Fraction = 0.5
    c: Annotated[float, Field(ge=0)] = 60.0
    dense: Dense = field(default_factory=Dense)
    bm25: BM25 = field(default_factory=BM25)

    @property
    def parts(self) -> tuple[Retriever, ...]:
        """The dense and the BM25 retriever, each at least as deep as the fusion."""
        return tuple(replace(part, depth=max(self.depth, part.depth)) for part in (self.dense, self.bm25))

    @property
    def scale(self) -> Scale:
        """`unit` for weighted sums, `raw` for reciprocal ranks."""
        return "unit" if self.fusion == "weighted" else "raw"

    def fuse(self, rankings: Sequence[tuple[Ints, Floats]], searched: FusionContext) -> Row:
        """Return the `depth` best chunks by fused score."""
        values = [self._values(scores) for _, scores in rankings]
        ids, total = weighted_sum([ids for ids, _ in rankings], values, (self.weight, 1 - self.weight))
        return best_first(ids, total, self.depth, decimals=9)

    def _values(self, scores: Floats) -> Floats:
        return reciprocal_ranks(len(scores), self.c) if self.fusion == "rrf" else min_max(scores)
