"""Windows of equal size."""

from dataclasses import dataclass

from harness.components.chunkers.packing import Unit, windows
from harness.components.component import NotNegative, Positive
from harness.components.roles import Chunker
from harness.core.records import Document, Spans


@dataclass(frozen=True)
class Fixed(Chunker):
    """Windows of `size` tokens or characters, each repeating the last `overlap` of the previous one."""

    size: Positive = 256
    overlap: NotNegative = 0
    unit: Unit = "tokens"

    def problem(self) -> str | None:
        """An error message if `overlap` is not smaller than `size`."""
        return f"overlap {self.overlap} must be smaller than size {self.size}" if self.overlap >= self.size else None

    def split(self, doc: Document) -> Spans:
        """Return the windows over the whole document."""
        return windows(doc, 0, len(doc.text), size=self.size, overlap=self.overlap, unit=self.unit)
