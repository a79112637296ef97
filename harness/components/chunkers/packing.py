"""Measure pieces of a document and pack neighbours into chunks up to a size."""

import itertools
import re
from collections.abc import Callable, Iterable
from typing import Literal

import numpy as np

from harness.core.records import Document, Ints, Spans

Unit = Literal["tokens", "characters"]
Length = Callable[[int, int], int]

_NOT_BLANK = re.compile(r"\S")


def length_in(doc: Document, unit: Unit) -> Length:
    """Return the function that measures a span of the document in a unit."""
    return doc.token_map().count if unit == "tokens" else lambda start, end: end - start


def windows(doc: Document, start: int, end: int, *, size: int, overlap: int = 0, unit: Unit = "tokens") -> Spans:
    """Spans of at most `size` units over `[start, end)`, each repeating at most the last `overlap` of the previous one.

    The last span ends at `end` and is never contained in the previous one. A span exceeds `size` only if it is a single
    character of more than `size` tokens.
    """
    edges, lengths = _edges(doc, start, end, unit)
    spans: Spans = []
    first = 0
    while first < len(edges) - 1:
        last = max(first + 1, int(np.searchsorted(lengths, lengths[first] + size, "right")) - 1)
        spans.append((int(edges[first]), int(edges[last])))
        if last == len(edges) - 1:
            break
        first = max(first + 1, int(np.searchsorted(lengths, lengths[last] - overlap)))
    return spans


def _edges(doc: Document, start: int, end: int, unit: Unit) -> tuple[Ints, Ints]:
    """The offsets at which a span may be cut, both ends included, and the number of units before each of them."""
    if unit == "characters":
        edges = np.arange(start, end + 1)
        return edges, edges - start
    starts = doc.token_map().starts
    lo, hi = np.searchsorted(starts, (start, end))
    edges = np.unique(np.concatenate([[start], starts[lo:hi], [end]]))
    # No cut between leading white space and the first token.
    edges = np.delete(edges, 1) if hi > lo and starts[lo] > start else edges
    return edges, np.searchsorted(starts, edges) - lo


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without white space at its edges; an empty span if it contains nothing else."""
    first = _NOT_BLANK.search(text, start, end)
    if first is None:
        return start, start
    while text[end - 1].isspace():
        end -= 1
    return first.start(), end


def tidied(text: str, spans: Iterable[tuple[int, int]]) -> Spans:
    """Trim spans, then drop blank spans and spans that are contained in a neighbour."""
    tidy: Spans = []
    for span in spans:
        start, end = trimmed(text, *span)
        if start == end or (tidy and tidy[-1][0] <= start and end <= tidy[-1][1]):
            continue
        if tidy and start <= tidy[-1][0] and tidy[-1][1] <= end:
            tidy.pop()
        tidy.append((start, end))
    return tidy


def pieces_at(edges: Iterable[int], start: int, end: int) -> Spans:
    """The spans between consecutive edges, from `start` to `end`; every character is in exactly one of them.

    >>> pieces_at([4, 9], 0, 12)
    [(0, 4), (4, 9), (9, 12)]
    """
    inner = sorted({edge for edge in edges if start < edge < end})
    bounds = [start, *inner, end]
    return [(a, b) for a, b in itertools.pairwise(bounds) if a < b]


def packed(pieces: Spans, length: Length, *, size: int, overlap: int = 0) -> Spans:
    """Join neighbouring pieces while they fit `size`; a chunk repeats up to `overlap` of the previous one.

    Only whole pieces are repeated, and only if the next piece still fits after them. A piece longer than `size` becomes
    a chunk of its own, so split such pieces first.
    """
    chunks: Spans = []
    first = 0
    for at in range(len(pieces)):
        if at > first and length(pieces[first][0], pieces[at][1]) > size:
            chunks.append((pieces[first][0], pieces[at - 1][1]))
            first = _resume(pieces, first, at, length, size, overlap)
    if pieces:
        chunks.append((pieces[first][0], pieces[-1][1]))
    return chunks


def _resume(pieces: Spans, first: int, at: int, length: Length, size: int, overlap: int) -> int:
    """The first piece of the next chunk, which must contain piece `at`."""
    begin = at
    while begin - 1 > first and length(pieces[begin - 1][0], pieces[at - 1][1]) <= overlap:
        if length(pieces[begin - 1][0], pieces[at][1]) > size:
            break
        begin -= 1
    return begin
