"""Chunkers from chonkie."""

from dataclasses import dataclass
from typing import ClassVar

from harness.components.chunkers.alignment import aligned
from harness.components.chunkers.foreign import Foreign
from harness.core.records import Document, Spans


@dataclass(frozen=True)
class Chonkie(Foreign):
    """A chunker from chonkie, given by class name and `options`, with sizes in its own units.

    Its offsets are used if they match the text of every chunk; otherwise the texts are aligned with the document one
    after the other. Offsets are exact, or the run stops.
    """

    module: ClassVar[str] = "chonkie"
    package: ClassVar[str] = "chonkie"

    splitter: str = "RecursiveChunker"

    def split(self, doc: Document) -> Spans:
        """Return the spans of the chunks. Raises ConfigError if they cannot be aligned with the document."""
        chunks = self.asked(lambda splitter: list(splitter.chunk(doc.text))) if doc.text.strip() else []
        lines = [(int(chunk.start_index), int(chunk.end_index)) for chunk in chunks]
        if all(doc.text[start:end] == chunk.text for (start, end), chunk in zip(lines, chunks, strict=True)):
            return lines
        return aligned(doc.text, [chunk.text for chunk in chunks], f"chunker chonkie: document '{doc.id}'")
