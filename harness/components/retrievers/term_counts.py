"""Counts of words in chunks, part by part, and the postings of a whole corpus made of them."""

from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np

from harness.core.records import Floats, Ints
from harness.storage.store import Artifact

Scores = Callable[[Ints, Floats, Floats], Floats]
"""The scores of postings, (postings,), by their terms, how often each occurs in its chunk, and the chunk's length."""


def term_counts(chunks: Iterable[Sequence[str]]) -> Artifact:
    """Count the words of each chunk.

    Returns postings sorted by term: `chunks` and `times` (how often), those of term t in `[offsets[t]:offsets[t + 1]]`,
    the `lengths` of all chunks in words, (chunks,), and as data the terms in order of first appearance.
    """
    vocabulary: dict[str, int] = {}
    words, lengths = array("i"), array("i")
    for chunk in chunks:
        words.extend([vocabulary.setdefault(word, len(vocabulary)) for word in chunk])
        lengths.append(len(chunk))
    counts, terms = np.frombuffer(lengths, np.int32), np.frombuffer(words, np.int32)
    # One number per occurrence, by term and then by chunk, which sorts faster than pairs.
    places = terms * np.int64(max(1, len(counts))) + np.repeat(np.arange(len(counts)), counts)
    postings, times = np.unique(places, return_counts=True)
    term, chunk = np.divmod(postings, max(1, len(counts)))
    offsets = np.searchsorted(term, np.arange(len(vocabulary) + 1))
    arrays = {"chunks": chunk.astype(np.int32), "times": times.astype(np.int32), "offsets": offsets, "lengths": counts}
    return Artifact(arrays, list(vocabulary))


class TermCounts:
    """The counts of all parts of a corpus; terms are numbered by their first appearance in the corpus."""

    def __init__(self, parts: Sequence[Artifact]) -> None:
        self._parts = parts
        self._vocabulary: dict[str, int] = {}
        known = self._vocabulary
        self._terms = [np.array([known.setdefault(word, len(known)) for word in part.data], np.int64) for part in parts]

    @cached_property
    def found_in(self) -> Ints:
        """The number of chunks in which each term occurs, (terms,)."""
        total = np.zeros(len(self._vocabulary), np.int64)
        for part, terms in zip(self._parts, self._terms, strict=True):
            total[terms] += np.diff(part.arrays["offsets"])
        return total

    @cached_property
    def lengths(self) -> Ints:
        """The number of words in each chunk, (chunks,)."""
        return np.concatenate([np.zeros(0, np.int32), *(part.arrays["lengths"] for part in self._parts)])

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return len(self.lengths)

    def postings(self, scores: Scores) -> Artifact:
        """Return `chunks` and `scores` by term, with `offsets` as in `term_counts`, and as data the terms.

        Besides the result, only the postings of one part are in memory at once.
        """
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.found_in)])
        chunks, values = np.empty(offsets[-1], np.int32), np.empty(offsets[-1])
        free, first = offsets[:-1].copy(), 0
        for part, terms in zip(self._parts, self._terms, strict=True):
            lengths, counts = part.arrays["lengths"], np.diff(part.arrays["offsets"])
            # The postings of a term in this part follow those in the parts before it.
            inside = np.arange(len(part.arrays["chunks"])) - np.repeat(part.arrays["offsets"][:-1], counts)
            places = np.repeat(free[terms], counts) + inside
            chunk = part.arrays["chunks"]
            chunks[places] = chunk + first
            values[places] = scores(
                np.repeat(terms, counts), part.arrays["times"].astype(np.float64), lengths[chunk].astype(np.float64)
            )
            free[terms] += counts
            first += len(lengths)
        return Artifact({"chunks": chunks, "scores": values, "offsets": offsets}, list(self._vocabulary))
