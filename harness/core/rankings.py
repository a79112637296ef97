"""Rankings as flat arrays: the hits of many queries, and the sort order that all rankings share."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harness.core.blame import FaultyReturn
from harness.core.records import Floats, Ints, Vectors

Row = tuple[Ints, Floats] | tuple[Ints, Floats, Ints]
"""The hits of one query, best first: chunk numbers, scores, and optionally the `Rankings.reach` of each."""


class Rankings(NamedTuple):
    """One ranking per query, flat: row `i` is `ids[offsets[i]:offsets[i+1]]`, best first.

    `ids` are chunk numbers, (total,); `scores` their scores, (total,), float64; `offsets` has shape (queries + 1,).
    `reach`, (total,), is the document offset up to which a hit extends beyond its chunk, or 0 if it does not.
    """

    ids: Ints
    scores: Floats
    offsets: Ints
    reach: Ints

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "Rankings":
        """Join the hits of each query. Raises ConfigError if a row is not integer chunk numbers with one score each."""
        for at, row in enumerate(rows):
            _require_row(at, row)
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row[0]) for row in rows], out=offsets[1:])
        ids = np.concatenate([row[0] for row in rows]) if rows else np.empty(0, np.int64)
        scores = np.concatenate([row[1] for row in rows]) if rows else np.empty(0)
        reach = [row[2] if len(row) == 3 else np.zeros(len(row[0])) for row in rows]
        ends = np.concatenate(reach) if rows else np.empty(0)
        return cls(ids.astype(np.int64), scores.astype(np.float64), offsets, ends.astype(np.int64))

    def row(self, query: int) -> tuple[Ints, Floats]:
        """The chunk numbers and scores of one query, each of shape (hits,)."""
        at = slice(self.offsets[query], self.offsets[query + 1])
        return self.ids[at], self.scores[at]

    def only(self, query: int) -> "Rankings":
        """The ranking of one query."""
        hits = self.offsets[query + 1] - self.offsets[query]
        return Rankings(*self.row(query), np.array([0, hits]), self.reaches(query))

    def reaches(self, query: int) -> Ints:
        """The `reach` of each of one query's hits, shape (hits,)."""
        return self.reach[self.offsets[query] : self.offsets[query + 1]]

    @property
    def queries(self) -> int:
        """The number of queries."""
        return len(self.offsets) - 1


def _require_row(at: int, row: Row) -> None:
    parts = [np.asarray(part) for part in row] if isinstance(row, tuple) and len(row) in (2, 3) else []
    if len(parts) < 2 or any(part.ndim != 1 or len(part) != len(parts[0]) for part in parts):
        raise FaultyReturn(
            f"row {at} of the rankings: expected (chunk numbers, scores) of equal length, got {row!r:.60}"
        )
    ids, scores = parts[0].dtype.kind, parts[1].dtype.kind
    if len(parts[0]) and (ids not in "iu" or scores not in "fiu"):
        raise FaultyReturn(
            f"row {at} of the rankings: expected integer chunk numbers and real scores, got {parts[0].dtype} and "
            f"{parts[1].dtype}"
        )


def unit_rows(vectors: Vectors) -> Vectors:
    """The rows scaled to unit length, (rows, dimensions) float32; a row of zeros is unchanged."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return scaled


def best_first(ids: Ints, scores: Floats, limit: int, decimals: int = 5) -> tuple[Ints, Floats]:
    """The `limit` best hits, with scores rounded to `decimals` and ties in chunk order (document, then start).

    Rounding makes equal texts tie despite floating-point noise; chunk order then breaks the tie the same way in every
    run.

    >>> best_first(np.array([7, 2, 5]), np.array([0.5, 0.500001, 0.9]), 2)
    (array([5, 2]), array([0.9, 0.5]))
    """
    rounded = np.round(scores, decimals) + 0.0  # + 0.0 turns -0.0 into 0.0
    if len(rounded) > 4 * limit > 0:
        # Only what reaches the score of the last place has to be sorted.
        candidates = np.flatnonzero(rounded >= -np.partition(-rounded, limit - 1)[limit - 1])
        ids, rounded = ids[candidates], rounded[candidates]
    order = np.lexsort((ids, -rounded))[:limit]
    return ids[order], rounded[order]
