"""Node parsers of LlamaIndex."""

from dataclasses import dataclass
from typing import ClassVar

from harness.components.chunkers.foreign import TextSplitter


@dataclass(frozen=True)
class LlamaIndex(TextSplitter):
    """A text splitter of llama_index.core.node_parser, by class name and `options`, its sizes in its own units.

    Offsets are exact, or the run stops: pieces are aligned one after the other, as a splitter gives only text.
    """

    module: ClassVar[str] = "llama_index.core.node_parser"
    package: ClassVar[str] = "llama-index-core"

    splitter: str = "SentenceSplitter"
