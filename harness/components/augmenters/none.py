"""No context."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness.components.roles import Augmenter
from harness.core.records import Document


@dataclass(frozen=True)
class NoContext(Augmenter):
    """No context: only the text of the chunk is indexed."""

    adds_context: ClassVar[bool] = False

    @classmethod
    def name(cls) -> str:
        """Always "none"."""
        return "none"  # None cannot be a class name

    def augment(self, doc: Document, spans: Sequence[tuple[int, int]]) -> list[str]:
        """Return an empty string for each span."""
        return [""] * len(spans)
