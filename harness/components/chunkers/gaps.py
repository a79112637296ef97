"""Sentences, and the similarity of the texts on both sides of each gap between them."""

import itertools

import numpy as np

from harness.components.chunkers.packing import pieces_at, windows
from harness.core.records import Document, Floats, Spans, Vectors
from harness.core.sentences import sentence_spans


def sentences(doc: Document, language: str, size: int) -> Spans:
    """The sentences of a document with the white space after them; sentences over `size` tokens are cut into windows.

    Together they cover the whole text.
    """
    length = doc.token_map().count
    pieces: Spans = []
    for start, end in pieces_at((start for start, _ in sentence_spans(doc.text, language)), 0, len(doc.text)):
        pieces += [(start, end)] if length(start, end) <= size else windows(doc, start, end, size=size)
    return pieces


def gap_similarities(vectors: Vectors, window: int) -> Floats:
    """The cosine across each gap between neighbouring pieces, (pieces - 1,), rounded to five decimals to remove noise.

    Each side is the mean of up to `window` unit vectors; `vectors` is (pieces, dimensions).
    """
    values = np.zeros(max(0, len(vectors) - 1))
    for at in range(len(values)):
        before = vectors[max(0, at + 1 - window) : at + 1].astype(np.float64).mean(axis=0)
        after = vectors[at + 1 : at + 1 + window].astype(np.float64).mean(axis=0)
        lengths = np.linalg.norm(before) * np.linalg.norm(after)
        values[at] = before @ after / lengths if lengths else 0.0
    rounded: Floats = np.round(values, 5)
    return rounded


def joined(pieces: Spans, cuts: list[int]) -> Spans:
    """Join pieces between cuts; a cut is the number of the piece that begins the next chunk.

    >>> joined([(0, 4), (5, 9), (9, 12)], [2])
    [(0, 9), (9, 12)]
    """
    if not pieces:
        return []
    bounds = [0, *sorted(set(cuts)), len(pieces)]
    return [(pieces[a][0], pieces[b - 1][1]) for a, b in itertools.pairwise(bounds) if a < b]
