"""How alike passages are: by the words they share, or by their vectors."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np

from harness.core.records import Floats, Hit

By = Literal["words", "vectors"]

_WORD = re.compile(r"\w{3,}")


@lru_cache(maxsize=50_000)
def word_set(text: str) -> frozenset[str]:
    """The lower-cased words longer than two letters."""
    return frozenset(_WORD.findall(text.lower()))


@lru_cache(maxsize=200_000)
def jaccard(one: str, other: str) -> float:
    """The Jaccard index of two texts' words; of texts without any, 1 where they are equal, else 0.

    Many queries and trials meet the same pair of chunks.
    """
    a, b = word_set(one), word_set(other)
    if not a or not b:
        return float(one == other)
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared)


def cosines(hits: Sequence[Hit]) -> Floats:
    """The cosine of each pair of hits, (hits, hits), to five decimals: beyond is noise.

    Raises TypeError where a hit has no vector.
    """
    vectors = [hit.chunk.vector for hit in hits]
    if not vectors:
        return np.empty((0, 0))
    if any(vector is None for vector in vectors):
        raise TypeError("a step that reads vectors must say so with `uses_vectors`")
    stacked = np.stack(vectors).astype(np.float64)  # type: ignore[arg-type]
    rounded: Floats = np.round(stacked @ stacked.T, 5)
    return rounded


def nearest(hits: Sequence[Hit], at: int, others: Sequence[int], matrix: Floats | None) -> tuple[float, int | None]:
    """The one of `others` most like hit `at`, by `matrix` or by words, and how alike; the first of those that tie."""
    best, found = 0.0, None
    for other in others:
        alike = jaccard(hits[at].chunk.text, hits[other].chunk.text) if matrix is None else float(matrix[at, other])
        if found is None or alike > best:
            best, found = alike, other
    return best, found
