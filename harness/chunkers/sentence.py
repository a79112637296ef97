"""Whole sentences packed up to a size."""

from dataclasses import dataclass

from harness.chunkers.packing import packed, pieces_at, tidied, windows
from harness.component import Chunker, NotNegative, Positive
from harness.model import Document, Spans
from harness.punkt import sentence_spans


@dataclass(frozen=True)
class Sentence(Chunker):
    """Sentences (NLTK Punkt) packed up to `size` tokens, each chunk repeating up to `overlap` tokens of whole
    sentences.

    A sentence longer than `size` is cut into windows. Kiss & Strunk, Computational Linguistics 32(4), 2006.
    """

    size: Positive = 256
    overlap: NotNegative = 0
    language: str = "english"

    def problem(self) -> str | None:
        return f"overlap {self.overlap} must be smaller than size {self.size}" if self.overlap >= self.size else None

    def split(self, doc: Document) -> Spans:
        length = doc.token_map().count
        pieces: Spans = []
        for start, end in pieces_at((start for start, _ in sentence_spans(doc.text, self.language)), 0, len(doc.text)):
            pieces += [(start, end)] if length(start, end) <= self.size else windows(doc, start, end, size=self.size)
        return tidied(doc.text, packed(pieces, length, size=self.size, overlap=self.overlap))
