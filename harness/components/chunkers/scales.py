"""Chunks of several sizes at once."""

from dataclasses import dataclass
from typing import Literal

from harness.components.chunkers.fixed import Fixed
from harness.components.chunkers.markdown import Markdown
from harness.components.chunkers.recursive import Recursive
from harness.components.chunkers.sentence import Sentence
from harness.components.component import Positive
from harness.components.roles import ScalesChunker
from harness.core.records import Document, Spans

_BY = {"fixed": Fixed, "sentence": Sentence, "recursive": Recursive, "markdown": Markdown}


@dataclass(frozen=True)
class Scales(ScalesChunker):
    """Chunks of several `sizes` in tokens, finest first, all cut by the same chunker: the index side of chunk
    ensembling.

    Each chunk is tagged with its scale; a chunk that is the same at several scales counts as the finest. Any retriever
    can search them; only `ensemble` uses the scales.
    """

    sizes: tuple[Positive, ...] = (128, 512, 2000)
    by: Literal["fixed", "sentence", "recursive", "markdown"] = "recursive"

    def problem(self) -> str | None:
        """An error message if `sizes` is empty or not strictly increasing."""
        if not self.sizes:
            return "sizes is empty; set it to a list such as [128, 512, 2000]"
        return None if list(self.sizes) == sorted(set(self.sizes)) else "sizes must increase, finest first"

    def tilings(self, doc: Document) -> list[Spans]:
        """Return the chunks of each size, finest first."""
        cut = _BY[self.by]
        return [cut(size=size).split(doc) for size in self.sizes]
