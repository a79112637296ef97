"""Node parsers from LlamaIndex."""

from dataclasses import dataclass
from typing import ClassVar

from harness.components.chunkers.foreign import TextSplitter


@dataclass(frozen=True)
class LlamaIndex(TextSplitter):
    """A text splitter from llama_index.core.node_parser, by class name and `options`, with sizes in its own units.

    Splitters return only text, so the pieces are aligned with the document one after the other: offsets are exact, or
    the run stops.
    """

    module: ClassVar[str] = "llama_index.core.node_parser"
    package: ClassVar[str] = "llama-index-core"

    splitter: str = "SentenceSplitter"
