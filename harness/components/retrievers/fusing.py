"""Functions to fuse rankings."""

from collections.abc import Sequence

import numpy as np

from harness.core.records import Floats, Ints


def reciprocal_ranks(count: int, c: float) -> Floats:
    """1 / (c + rank) for ranks 1 to `count`: reciprocal rank fusion (Cormack, Clarke & Büttcher, SIGIR 2009)."""
    return 1 / (c + np.arange(1, count + 1))


def weighted_sum(ids: Sequence[Ints], values: Sequence[Floats], weights: Sequence[float]) -> tuple[Ints, Floats]:
    """Return the distinct chunks of all lists and their weighted sums of values; a list without a chunk adds 0."""
    total: dict[int, float] = {}
    for weight, chunks, worth in zip(weights, ids, values, strict=True):
        for chunk, value in zip(chunks.tolist(), worth.tolist(), strict=True):
            total[chunk] = total.get(chunk, 0.0) + weight * value
    return np.array(list(total), np.int64), np.array(list(total.values()), np.float64)
