"""Recursive splitting at separators in order of preference."""

from dataclasses import dataclass
from typing import Literal

from harness.components.chunkers.packing import Length, Unit, length_in, packed, pieces_at, tidied, trimmed, windows
from harness.components.component import NotNegative, Positive
from harness.components.roles import Chunker
from harness.core.records import Document, Spans

KeepSeparator = Literal["end", "start"]

SENTENCES = ("\n\n", "\n", ". ", "? ", "! ", " ")
"""Separators that end sentences."""


@dataclass(frozen=True)
class Recursive(Chunker):
    """Split at each separator in turn until the pieces fit `size`, and merge neighbouring pieces up to `size`.

    A separator stays at the end of the piece before it, or at the start of the piece after it (`keep_separator: start`,
    as in LangChain), so that no text is lost. What is still too long is cut into windows.
    """

    size: Positive = 256
    overlap: NotNegative = 0
    separators: tuple[str, ...] = ("\n\n", "\n", ". ", " ")
    unit: Unit = "tokens"
    keep_separator: KeepSeparator = "end"

    def problem(self) -> str | None:
        """An error message if a separator is empty or `overlap` is not smaller than `size`."""
        if "" in self.separators:
            return "separators must not be empty; text without a separator is cut into windows anyway"
        return f"overlap {self.overlap} must be smaller than size {self.size}" if self.overlap >= self.size else None

    def split(self, doc: Document) -> Spans:
        """Return the chunks without white space at their edges."""
        return tidied(doc.text, self.between(doc, 0, len(doc.text)))

    def between(self, doc: Document, start: int, end: int) -> Spans:
        """Return the chunks of `[start, end)`; together they cover every character of it."""
        return self._split(doc, start, end, self.separators, length_in(doc, self.unit))

    def _split(self, doc: Document, start: int, end: int, separators: tuple[str, ...], length: Length) -> Spans:
        if length(start, end) <= self.size:
            return [(start, end)]
        if not separators:
            return windows(doc, start, end, size=self.size, overlap=self.overlap, unit=self.unit)
        separator, *finer = separators
        chunks: Spans = []
        small: Spans = []
        for piece in pieces_at(_edges(doc.text, separator, start, end, self.keep_separator), start, end):
            if length(*piece) <= self.size:
                small.append(piece)
                continue
            chunks += packed(small, length, size=self.size, overlap=self.overlap)
            small = []
            chunks += self._split(doc, *piece, tuple(finer), length)
        return chunks + packed(small, length, size=self.size, overlap=self.overlap)


def small_pieces(
    doc: Document, size: int, separators: tuple[str, ...] = SENTENCES, keep_separator: KeepSeparator = "end"
) -> Spans:
    """Pieces of up to `size` tokens, whole sentences if they fit, for chunkers that join pieces into chunks."""
    cut = Recursive(size, separators=separators, keep_separator=keep_separator).split(doc)
    return [trimmed(doc.text, *span) for span in cut]


def _edges(text: str, separator: str, start: int, end: int, keep: KeepSeparator) -> list[int]:
    """The offset at which each run of the separator in `[start, end)` ends, or at which it starts."""
    begins: list[int] = []
    ends: list[int] = []
    at = text.find(separator, start, end)
    while at >= 0:
        stop = at + len(separator)
        if ends and ends[-1] == at:
            ends[-1] = stop
        else:
            begins.append(at)
            ends.append(stop)
        at = text.find(separator, stop, end)
    return ends if keep == "end" else begins
