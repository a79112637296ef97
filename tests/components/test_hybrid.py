"""Fusion computed by hand."""

from typing import Any

import numpy as np
import pytest

from harness.components.retrievers import BM25, Dense, Hybrid

DENSE = (np.array([1, 2, 3]), np.array([0.9, 0.5, 0.1]))
NOTHING: Any = None  # a hybrid uses only the rankings
LEXICAL = (np.array([2, 4]), np.array([7.0, 3.0]))


def test_reciprocal_ranks() -> None:
    """Chunk 2 has ranks 2 and 1; chunk 1 has rank 1 in one list."""
    ids, scores = Hybrid(c=60).fuse([DENSE, LEXICAL], NOTHING)
    assert ids.tolist() == [2, 1, 4, 3]
    assert scores[0] == pytest.approx(0.5 / 62 + 0.5 / 61, abs=1e-9)
    assert scores[1] == pytest.approx(0.5 / 61, abs=1e-9)


def test_weighted_scores_are_scaled_first() -> None:
    """0.9, 0.5, 0.1 become 1, 0.5, 0; 7 and 3 become 1 and 0: a raw 7 does not outweigh the cosines."""
    ids, scores = Hybrid(fusion="weighted", weight=0.6).fuse([DENSE, LEXICAL], NOTHING)
    assert dict(zip(ids.tolist(), scores.tolist(), strict=True)) == pytest.approx({1: 0.6, 2: 0.7, 3: 0, 4: 0})


def test_equal_scores_scale_to_one() -> None:
    """A ranking of one hit has full weight."""
    ids, scores = Hybrid(fusion="weighted").fuse(
        [(np.array([5]), np.array([0.2])), (np.empty(0, np.int64), np.empty(0))], NOTHING
    )
    assert (ids.tolist(), scores.tolist()) == ([5], [0.5])


def test_parts_are_as_deep_as_the_fusion_or_deeper() -> None:
    """Both parts have at least the depth of the fusion; a deeper part keeps its depth."""
    dense, lexical = Hybrid(depth=80, dense=Dense(depth=10), bm25=BM25(depth=200)).parts
    assert (dense.depth, lexical.depth) == (80, 200)


def test_more_ties_at_the_cut_off_than_spare_neighbours() -> None:
    """A hundred equal chunks: the first ones in the corpus are retrieved, not the first ones in the index."""
    vectors = np.zeros((200, 4), np.float32)
    vectors[50:150, 0] = 1
    vectors[[60, 140], 0] += np.float32(1e-7)  # noise below the rounding
    retriever = Dense(depth=5, similarity="dot")
    found = retriever.search(retriever.index([]), vectors, ["?"], np.array([[1, 0, 0, 0]], np.float32))
    assert found.row(0)[0].tolist() == [50, 51, 52, 53, 54]
