"""Paragraphs, optionally packed and split to a size."""

import re
from dataclasses import dataclass

from harness.components.chunkers.packing import packed, pieces_at, tidied, trimmed, windows
from harness.components.component import Positive
from harness.components.roles import Chunker
from harness.core.records import Document, Spans

_BREAK = re.compile(r"(?:\r\n|\r|\n)(?:[^\S\r\n]*(?:\r\n|\r|\n))+")


@dataclass(frozen=True)
class Paragraph(Chunker):
    """Paragraphs between blank lines; with `size`, neighbours are packed up to it and longer ones cut into windows."""

    size: Positive | None = None

    def split(self, doc: Document) -> Spans:
        """Return the paragraphs; `size` is in tokens."""
        pieces = pieces_at((match.end() for match in _BREAK.finditer(doc.text)), 0, len(doc.text))
        if self.size is not None:
            length = doc.token_map().count
            sized: Spans = []
            for start, end in pieces:
                fits = length(*trimmed(doc.text, start, end)) <= self.size
                sized += [(start, end)] if fits else windows(doc, start, end, size=self.size)
            pieces = packed(sized, length, size=self.size)
        return tidied(doc.text, pieces)
