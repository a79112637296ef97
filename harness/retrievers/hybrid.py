"""Dense and lexical retrieval, merged."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from harness.component import Fraction, Fusion, Positive, Retriever
from harness.model import Floats, Ints, best_first
from harness.retrievers.bm25 import BM25
from harness.retrievers.dense import Dense


@dataclass(frozen=True)
class Hybrid(Fusion):
    """Dense and BM25 rankings, each at least `depth` deep, merged by reciprocal ranks or a weighted sum of scores.

    `rrf`: sum of weight / (c + rank), Cormack, Clarke & Büttcher, SIGIR 2009. `weighted`: scores of each ranking scaled
    to 0..1 (all equal: 1), then summed with their weights. `weight` is that of the dense side, 1 - `weight` BM25's.
    """

    depth: Positive = 50
    fusion: Literal["rrf", "weighted"] = "rrf"
    weight: Fraction = 0.5
    c: Annotated[float, Field(ge=0)] = 60.0
    dense: Dense = field(default_factory=Dense)
    bm25: BM25 = field(default_factory=BM25)

    @property
    def parts(self) -> tuple[Retriever, ...]:
        # A part set deeper than the fusion keeps its depth.
        return tuple(replace(part, depth=max(self.depth, part.depth)) for part in (self.dense, self.bm25))

    def fuse(self, rankings: Sequence[tuple[Ints, Floats]]) -> tuple[Ints, Floats]:
        weights = (self.weight, 1 - self.weight)
        total: dict[int, float] = {}
        for weight, (ids, scores) in zip(weights, rankings, strict=True):
            for chunk, value in zip(ids.tolist(), self._values(scores), strict=True):
                total[chunk] = total.get(chunk, 0.0) + weight * value
        return best_first(np.array(list(total), np.int64), np.array(list(total.values())), self.depth, decimals=9)

    def _values(self, scores: Floats) -> list[float]:
        if self.fusion == "rrf":
            return [1 / (self.c + rank) for rank in range(1, len(scores) + 1)]
        spread = np.ptp(scores) if len(scores) else 0.0
        scaled = (scores - scores.min()) / spread if spread else np.ones(len(scores))
        return [float(value) for value in scaled]
