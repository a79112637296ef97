"""Node parsers of LlamaIndex."""

from dataclasses import dataclass, field

from harness.chunkers.alignment import aligned
from harness.chunkers.foreign import Options, built
from harness.component import Chunker
from harness.model import Document, Spans


@dataclass(frozen=True)
class LlamaIndex(Chunker):
    """A text splitter of llama_index.core.node_parser, by class name and `options`, its sizes in its own units.

    Offsets are exact, or the run stops: pieces are aligned one after the other, as a splitter gives only text.
    """

    splitter: str = "SentenceSplitter"
    options: Options = field(default_factory=dict, hash=False)

    def split(self, doc: Document) -> Spans:
        splitter = built("llama_index", "llama_index.core.node_parser", self.splitter, self.options)
        return aligned(doc.text, splitter.split_text(doc.text), f"chunker llama_index: document '{doc.id}'")
