"""Keyword search in a corpus: passages of a few paragraphs, ranked by BM25."""

import re
from array import array
from collections.abc import Iterator, Sequence

import numpy as np

from harness.components.retrievers import BM25
from harness.core.progress import progress
from harness.core.records import Chunk, Document, Hit
from harness.storage.store import Artifact

_PART = 10_000
"""Documents whose passages are indexed at once."""

LENGTH = 800
"""Maximum length of a passage, in characters."""

_BLANK = re.compile(r"\n[ \t\r]*\n\s*")


def snippets(doc: Document, length: int) -> Iterator[Chunk]:
    """Passages of whole paragraphs, up to `length` characters each; longer paragraphs are cut at spaces.

    >>> [part.text for part in snippets(Document("a", "One.\\n\\nTwo.\\n\\nThree is long."), 10)]
    ['One.\\n\\nTwo.', 'Three is', 'long.']
    """
    start = end = 0
    for first, last in _paragraphs(doc.text, length):
        if end > start and last - start > length:
            yield Chunk.of(doc, start, end)
            start = first
        start, end = (first if end <= start else start), last
    if end > start:
        yield Chunk.of(doc, start, end)


def _paragraphs(text: str, length: int) -> Iterator[tuple[int, int]]:
    """Paragraphs without the white space around them, none longer than `length`."""
    edges = [0, *(at for gap in _BLANK.finditer(text) for at in gap.span()), len(text)]
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        at = start
        while at < end:
            cut = text.rfind(" ", at + 1, at + length + 1) if end - at > length else end
            cut = cut if cut > at else min(end, at + length)
            bare = text[at:cut].strip()
            if bare:
                first = at + text[at:cut].index(bare)
                yield first, first + len(bare)
            at = cut


class PassageSearch:
    """Searches the passages of all documents; the index is built once, and no text is kept."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        places = array("q")
        parts: list[Artifact] = []
        with progress("index the corpus", len(documents), unit="documents") as advance:
            for first in range(0, len(documents), _PART):
                texts = []
                for number in range(first, min(first + _PART, len(documents))):
                    doc = documents[number]
                    for part in snippets(doc, LENGTH):
                        texts.append(f"{doc.title}\n{part.text}")
                        places.extend((number, part.start, part.end))
                parts.append(BM25().index_part(texts))
                advance(min(_PART, len(documents) - first))
        self._places = np.frombuffer(places, np.int64).reshape(-1, 3)
        self._index = BM25().joined(parts)

    def search(self, words: str, k: int = 10) -> list[Hit]:
        """The `k` best passages, best first; passages that share no word with the search are left out."""
        ids, scores = BM25(depth=k).search(self._index, None, [words], None).row(0)
        places = zip(self._places[ids].tolist(), scores.tolist(), strict=True)
        return [Hit(Chunk.of(self._documents[number], start, end), score) for (number, start, end), score in places]
