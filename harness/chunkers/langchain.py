"""Text splitters of LangChain."""

from dataclasses import dataclass, field

from harness.chunkers.alignment import aligned
from harness.chunkers.foreign import Options, built
from harness.component import Chunker
from harness.model import Document, Spans


@dataclass(frozen=True)
class LangChain(Chunker):
    """A text splitter of langchain_text_splitters, by class name and `options`, its sizes in its own units.

    Offsets are exact, or the run stops: pieces are aligned one after the other, as a splitter gives only text.
    """

    splitter: str = "RecursiveCharacterTextSplitter"
    options: Options = field(default_factory=dict, hash=False)

    @classmethod
    def name(cls) -> str:
        return "langchain"  # it writes itself as one word

    def split(self, doc: Document) -> Spans:
        splitter = built("langchain", "langchain_text_splitters", self.splitter, self.options)
        return aligned(doc.text, splitter.split_text(doc.text), f"chunker langchain: document '{doc.id}'")
