"""Chunkers of chonkie."""

from dataclasses import dataclass, field

from harness.chunkers.alignment import aligned
from harness.chunkers.foreign import Options, built
from harness.component import Chunker
from harness.model import Document, Spans


@dataclass(frozen=True)
class Chonkie(Chunker):
    """A chunker of chonkie, by class name and `options`, its sizes in its own units.

    Its own offsets are used where they are those of the text it gives for all chunks; else the texts are aligned one
    after the other. Offsets are exact, or the run stops.
    """

    splitter: str = "RecursiveChunker"
    options: Options = field(default_factory=dict, hash=False)

    def split(self, doc: Document) -> Spans:
        chunks = built("chonkie", "chonkie", self.splitter, self.options).chunk(doc.text) if doc.text.strip() else []
        told = [(int(chunk.start_index), int(chunk.end_index)) for chunk in chunks]
        if all(doc.text[start:end] == chunk.text for (start, end), chunk in zip(told, chunks, strict=True)):
            return told
        return aligned(doc.text, [chunk.text for chunk in chunks], f"chunker chonkie: document '{doc.id}'")
