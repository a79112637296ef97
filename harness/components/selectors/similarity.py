"""Similarity of passages, by shared words or by vectors."""

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
    """The distinct lower-cased words longer than two letters."""
    return frozenset(_WORD.findall(text.lower()))


@lru_cache(maxsize=200_000)
def jaccard(one: str, other: str) -> float:
    """The Jaccard index of two texts' words; if a text has no words, 1 if the texts are equal, else 0.

    Cached, because many queries and trials compare the same pair of chunks.
    """
    a, b = word_set(one), word_set(other)
    if not a or not b:
        return float(one == other)
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared)


def cosines(hits: Sequence[Hit]) -> Floats:
    """The cosine of each pair of hits, (hits, hits), rounded to five decimals to remove noise.

    Raises TypeError if a hit has no vector.
    """
    vectors = [hit.chunk.vector for hit in hits]
    if not vectors:
        return np.empty((0, 0))
    if any(vector is None for vector in vectors):
        raise TypeError("a step that reads vectors must set `uses_vectors`")
    stacked = np.stack(vectors).astype(np.float64)  # type: ignore[arg-type]
    rounded: Floats = np.round(stacked @ stacked.T, 5)
    return rounded


def nearest(hits: Sequence[Hit], at: int, others: Sequence[int], matrix: Floats | None) -> tuple[float, int | None]:
    """The highest similarity of hit `at` to `others`, by `matrix` or by words, and that hit; ties go to the first."""
    best, found = 0.0, None
    for other in others:
        value = jaccard(hits[at].chunk.text, hits[other].chunk.text) if matrix is None else float(matrix[at, other])
        if found is None or value > best:
            best, found = value, other
    return best, found
