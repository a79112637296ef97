"""Chunkers of chonkie."""

from dataclasses import dataclass
from typing import ClassVar

from harness.components.chunkers.alignment import aligned
from harness.components.chunkers.foreign import Foreign
from harness.core.records import Document, Spans


@dataclass(frozen=True)
class Chonkie(Foreign):
    """A chunker of chonkie, by class name and `options`, its sizes in its own units.

    Its own offsets are used where they are those of the text it gives for all chunks; else the texts are aligned one
    after the other. Offsets are exact, or the run stops.
    """

    module: ClassVar[str] = "chonkie"
    package: ClassVar[str] = "chonkie"

    splitter: str = "RecursiveChunker"

    def split(self, doc: Document) -> Spans:
        chunks = self.asked(lambda splitter: list(splitter.chunk(doc.text))) if doc.text.strip() else []
        lines = [(int(chunk.start_index), int(chunk.end_index)) for chunk in chunks]
        if all(doc.text[start:end] == chunk.text for (start, end), chunk in zip(lines, chunks, strict=True)):
            return lines
        return aligned(doc.text, [chunk.text for chunk in chunks], f"chunker chonkie: document '{doc.id}'")
