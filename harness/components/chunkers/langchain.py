"""Text splitters of LangChain."""

from dataclasses import dataclass, field
from typing import ClassVar

from harness.components.chunkers.foreign import TextSplitter


@dataclass(frozen=True)
class LangChain(TextSplitter):
    """A text splitter of langchain_text_splitters, by class name and `options`.

    `length_function` is what it measures in: `characters`, or a tokenizer such as `cl100k_base` or `words`; null leaves
    it to the splitter, as those that count tokens themselves want it. Offsets are exact, or the run stops: pieces are
    aligned one after the other, as a splitter gives only text.
    """

    module: ClassVar[str] = "langchain_text_splitters"
    package: ClassVar[str] = "langchain-text-splitters"

    splitter: str = "RecursiveCharacterTextSplitter"
    length_function: str | None = field(default=None, kw_only=True)

    def problem(self) -> str | None:
        if "length_function" in self.options:
            return "options.length_function: is a setting of its own; write `length_function: cl100k_base`"
        return None

    def length(self) -> str:
        return self.length_function or ""

    @classmethod
    def name(cls) -> str:
        return "langchain"  # it writes itself as one word
