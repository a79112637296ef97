"""Batches for local models, padded so that a text's result does not depend on the other texts in its batch."""

from collections.abc import Iterator
from typing import Any

BATCH = 8
"""Rows per batch. Small batches of similar lengths waste the least padding on a CPU."""
STEP = 16
"""Batches are padded to a multiple of this many tokens."""


def padded_batches(tokenizer: Any, encoded: Any, longest: int) -> Iterator[tuple[list[int], Any]]:
    """Yield up to `BATCH` row numbers of `encoded` and their padded features; the remaining rows are filler.

    Every batch has `BATCH` rows. Its length in tokens, at most `longest`, is the rounded-up length of each of its
    texts, so the arithmetic for a text is the same in every batch.
    """
    by_length: dict[int, list[int]] = {}
    for row, ids in enumerate(encoded["input_ids"]):
        by_length.setdefault(min(-(-len(ids) // STEP) * STEP, longest), []).append(row)
    for length, all_rows in sorted(by_length.items()):
        for start in range(0, len(all_rows), BATCH):
            rows = all_rows[start : start + BATCH]
            filled = rows + rows[:1] * (BATCH - len(rows))
            columns = {name: [column[row] for row in filled] for name, column in encoded.items()}
            padding = {"padding": "max_length", "max_length": length, "return_tensors": "pt"}
            yield rows, tokenizer.pad(columns, **padding)
