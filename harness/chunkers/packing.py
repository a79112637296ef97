"""Measuring pieces of a document and packing neighbours into chunks of a size."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from harness.model import Document, Spans

Unit = Literal["tokens", "characters"]
Length = Callable[[int, int], int]

_NOT_BLANK = re.compile(r"\S")


def length_in(doc: Document, unit: Unit) -> Length:
    """The function that measures a span of the document in a unit."""
    return doc.token_map().count if unit == "tokens" else lambda start, end: end - start


def windows(doc: Document, start: int, end: int, *, size: int, overlap: int = 0, unit: Unit = "tokens") -> Spans:
    """Spans of `size` units over `[start, end)`, each beginning `size - overlap` after the one before.

    The last one ends at `end` and is never wholly inside the one before it. A character of more tokens than `size` stays
    whole.
    """
    if unit == "characters":
        edges: Sequence[int] = range(start, end)
    else:
        starts = doc.token_map().starts
        lo, hi = starts.searchsorted((start, end))
        edges = [start, *starts[lo:hi].tolist()[1:]] if hi > lo else [start]
    spans: Spans = []
    for at in range(0, max(1, len(edges)), size - overlap):
        stop = edges[at + size] if at + size < len(edges) else end
        if stop > edges[at]:
            spans.append((edges[at], stop))
        if stop == end:
            break
    return spans


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without white space at its edges; empty where nothing else is in it."""
    first = _NOT_BLANK.search(text, start, end)
    if first is None:
        return start, start
    while text[end - 1].isspace():
        end -= 1
    return first.start(), end


def pieces_at(edges: Iterable[int], start: int, end: int) -> Spans:
    """The spans between consecutive edges, from `start` to `end`; every character lies in exactly one.

    >>> pieces_at([4, 9], 0, 12)
    [(0, 4), (4, 9), (9, 12)]
    """
    inner = sorted({edge for edge in edges if start < edge < end})
    bounds = [start, *inner, end]
    return [(a, b) for a, b in zip(bounds, bounds[1:], strict=False) if a < b]


def packed(pieces: Spans, length: Length, *, size: int, overlap: int = 0) -> Spans:
    """Join neighbouring pieces while they fit `size`; a chunk repeats up to `overlap` of the one before it.

    Only whole pieces are repeated, and only where the next piece still fits behind them. A piece longer than `size`
    becomes a chunk of its own: split it first.
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
    """The first piece of the next chunk, which must hold piece `at`."""
    begin = at
    while begin - 1 > first and length(pieces[begin - 1][0], pieces[at - 1][1]) <= overlap:
        if length(pieces[begin - 1][0], pieces[at][1]) > size:
            break
        begin -= 1
    return begin
