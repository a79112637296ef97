"""Whole sentences, packed up to a size."""

from dataclasses import dataclass

from harness.components.chunkers.gaps import sentences
from harness.components.chunkers.packing import packed, tidied
from harness.components.component import NotNegative, Positive
from harness.components.roles import Chunker
from harness.core.records import Document, Spans


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
        """An error message if `overlap` is not smaller than `size`."""
        return f"overlap {self.overlap} must be smaller than size {self.size}" if self.overlap >= self.size else None

    def split(self, doc: Document) -> Spans:
        """Return the chunks without white space at their edges."""
        pieces = sentences(doc, self.language, self.size)
        chunks = packed(pieces, doc.token_map().count, size=self.size, overlap=self.overlap)
        return tidied(doc.text, chunks)
