"""Token counts, cuts, ties and rankings."""

import numpy as np

from harness.core.rankings import Rankings, best_first
from harness.core.records import Chunk, Document, TokenMap

MAP = TokenMap(np.array([0, 4, 4, 9, 12]))
DOC = Document("d", "", tokens=MAP)


def test_tokens_of_adjacent_spans_add_up() -> None:
    """Five tokens in 15 characters: 3 start before offset 9, 2 at or after it."""
    assert (MAP.count(0, 9), MAP.count(9, 15), MAP.count(0, 15)) == (3, 2, 5)


def test_a_cut_is_before_the_first_excess_token() -> None:
    """Two tokens from 0 end where the third begins; all five reach the end of the text."""
    assert MAP.end_of(0, 2) == 4
    assert MAP.end_of(0, 3) == 9
    assert MAP.end_of(0, 5) is None


def test_a_cut_chunk_keeps_text_and_offsets_together() -> None:
    """Context tokens are counted first; the text gets the remaining tokens."""
    chunk = Chunk("d", 0, 15, "abcdefghijklmno", "ctx", tokens=7, context_tokens=2, document=DOC)
    part = chunk.cut(5)
    assert part is not None
    assert (part.end, part.text, part.tokens) == (9, "abcdefghi", 5)
    assert chunk.cut(2) is None
    assert chunk.cut(7) is chunk


def test_ties_are_broken_by_chunk_order() -> None:
    """Scores that round to the same value tie; the lower chunk number comes first."""
    ids, scores = best_first(np.array([9, 3, 5]), np.array([0.5000001, 0.5, 0.7]), 3)
    assert ids.tolist() == [5, 3, 9]
    assert scores.tolist() == [0.7, 0.5, 0.5]


def test_rankings_rows() -> None:
    """A query without hits keeps an empty row."""
    ranked = Rankings.of([(np.array([4, 2]), np.array([1.0, 0.5])), (np.empty(0, np.int64), np.empty(0))])
    assert ranked.queries == 2
    assert ranked.row(0)[0].tolist() == [4, 2]
    assert ranked.row(1)[0].tolist() == []
