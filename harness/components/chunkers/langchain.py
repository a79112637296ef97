"""Text splitters from LangChain."""

from dataclasses import dataclass, field
from typing import ClassVar

from harness.components.chunkers.foreign import TextSplitter


@dataclass(frozen=True)
class LangChain(TextSplitter):
    """A text splitter from langchain_text_splitters, given by class name and `options`.

    `length_function` is the unit of lengths: `characters`, or a tokenizer such as `cl100k_base` or `words`; null leaves
    it to the splitter, which suits splitters that count tokens themselves. Splitters return only text, so the pieces
    are aligned with the document one after the other: offsets are exact, or the run stops.
    """

    module: ClassVar[str] = "langchain_text_splitters"
    package: ClassVar[str] = "langchain-text-splitters"

    splitter: str = "RecursiveCharacterTextSplitter"
    length_function: str | None = field(default=None, kw_only=True)

    def problem(self) -> str | None:
        """An error message if `options` contains `length_function`."""
        if "length_function" in self.options:
            return "options.length_function: is not an option but a setting; write `length_function: cl100k_base`"
        return None

    def length(self) -> str:
        """The setting `length_function`; empty if it is null."""
        return self.length_function or ""

    @classmethod
    def name(cls) -> str:
        """Always "langchain", the library's own spelling."""
        return "langchain"
