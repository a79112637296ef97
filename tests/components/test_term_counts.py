"""Postings of parts are the postings of the whole."""

from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from harness.components.retrievers.term_counts import TermCounts, term_counts
from harness.core.records import Floats, Ints
from harness.storage.store import Artifact

CHUNKS = st.lists(st.lists(st.sampled_from("abcde"), max_size=8), max_size=12)


def times(terms: Ints, times: Floats, lengths: Floats) -> Floats:
    """Scores from which the counts can be read."""
    return times + lengths / 100


def postings(parts: list[list[list[str]]]) -> Artifact:
    return TermCounts([term_counts(part) for part in parts]).postings(times)


@given(CHUNKS, st.lists(st.integers(0, 12), max_size=3))
def test_parts(chunks: list[list[str]], cuts: list[int]) -> None:
    """Wherever the corpus is split, also into empty parts."""
    bounds = [0, *sorted(min(cut, len(chunks)) for cut in cuts), len(chunks)]
    whole, parts = postings([chunks]), postings([chunks[lo:hi] for lo, hi in pairwise(bounds)])
    assert parts.data == whole.data
    for name, array in whole.arrays.items():
        assert np.array_equal(parts.arrays[name], array), name


@given(CHUNKS)
def test_postings(chunks: list[list[str]]) -> None:
    """Each word's chunks, how often it occurs in them and how long they are, by counting."""
    made = postings([chunks])
    offsets = made.arrays["offsets"]
    assert made.data == list(dict.fromkeys(word for chunk in chunks for word in chunk))
    for term, word in enumerate(made.data):
        at = slice(offsets[term], offsets[term + 1])
        found = dict(zip(made.arrays["chunks"][at].tolist(), made.arrays["scores"][at].tolist(), strict=True))
        assert found == {
            number: Counter(chunk)[word] + len(chunk) / 100 for number, chunk in enumerate(chunks) if word in chunk
        }
