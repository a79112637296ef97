"""Text splitters of LangChain."""

from dataclasses import dataclass
from typing import ClassVar

from harness.chunkers.foreign import TextSplitter


@dataclass(frozen=True)
class LangChain(TextSplitter):
    """A text splitter of langchain_text_splitters, by class name and `options`, its sizes in its own units.

    Offsets are exact, or the run stops: pieces are aligned one after the other, as a splitter gives only text.
    """

    module: ClassVar[str] = "langchain_text_splitters"
    package: ClassVar[str] = "langchain-text-splitters"

    splitter: str = "RecursiveCharacterTextSplitter"

    @classmethod
    def name(cls) -> str:
        return "langchain"  # it writes itself as one word
