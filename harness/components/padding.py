"""Batches for models on this machine, made so that a text's result does not depend on the company it is in."""

from collections.abc import Iterator
from typing import Any

BATCH = 8
"""Rows of every batch. Small batches of like lengths waste the least padding on a CPU."""
STEP = 16
"""Batches are padded to a multiple of this many tokens."""


def padded_batches(tokenizer: Any, encoded: Any, longest: int) -> Iterator[tuple[list[int], Any]]:
    """Row numbers of `encoded`, at most `BATCH`, and their padded features; rows beyond those named are filling.

    Every batch has the same number of rows, and a length that depends on each of its texts alone, at most `longest`:
    so the arithmetic for a text is always the same.
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
