"""No context at all."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.components.roles import Augmenter
from harness.core.records import Document


@dataclass(frozen=True)
class NoContext(Augmenter):
    """No context: chunks are indexed as they stand."""

    @classmethod
    def name(cls) -> str:
        return "none"  # None is not a class name

    def augment(self, doc: Document, spans: Sequence[tuple[int, int]]) -> list[str]:
        return [""] * len(spans)
