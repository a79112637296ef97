"""Node parsers of LlamaIndex."""

from dataclasses import dataclass
from typing import ClassVar

from harness.chunkers.alignment import aligned
from harness.chunkers.foreign import Foreign
from harness.model import Document, Spans


@dataclass(frozen=True)
class LlamaIndex(Foreign):
    """A text splitter of llama_index.core.node_parser, by class name and `options`, its sizes in its own units.

    Offsets are exact, or the run stops: pieces are aligned one after the other, as a splitter gives only text.
    """

    module: ClassVar[str] = "llama_index.core.node_parser"
    package: ClassVar[str] = "llama-index-core"

    splitter: str = "SentenceSplitter"

    def split(self, doc: Document) -> Spans:
        where = f"chunker {self.name()}: document '{doc.id}'"
        return aligned(doc.text, self.asked(lambda splitter: list(splitter.split_text(doc.text))), where)
