"""No chunks: another system cuts the corpus."""

from dataclasses import dataclass

from harness.components.roles import Chunker
from harness.core.records import Document, Spans


@dataclass(frozen=True)
class NoChunker(Chunker):
    """No chunks: for a retriever that returns passages of its own."""

    @classmethod
    def name(cls) -> str:
        """Always "none"."""
        return "none"  # None cannot be a class name

    def split(self, doc: Document) -> Spans:
        """Return no span."""
        return []
