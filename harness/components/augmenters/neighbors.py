"""Neighbouring sentences as context."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from harness.components.component import NotNegative
from harness.components.roles import Augmenter
from harness.core.records import Document
from harness.core.sentences import sentence_spans


@dataclass(frozen=True)
class Neighbors(Augmenter):
    """The `before` sentences (NLTK Punkt) before the chunk and the `after` sentences after it, joined by `gap`.

    If the chunk cuts a sentence, the rest of that sentence is included.
    """

    before: NotNegative = 1
    after: NotNegative = 1
    gap: str = " … "
    language: str = "english"

    def augment(self, doc: Document, spans: Sequence[tuple[int, int]]) -> list[str]:
        """Return the neighbouring sentences of each span; an empty string if there are none."""
        sentences = sentence_spans(doc.text, self.language)
        if not sentences:
            return [""] * len(spans)
        starts, ends = [start for start, _ in sentences], [end for _, end in sentences]
        contexts = []
        for start, end in spans:
            # The sentences in which the chunk begins and ends, then `before` and `after` more.
            first = max(0, bisect_right(ends, start) - self.before)
            last = min(len(sentences), bisect_left(starts, end) + self.after) - 1
            head = doc.text[starts[min(first, len(starts) - 1)] : start] if self.before else ""
            tail = doc.text[end : ends[max(last, 0)]] if self.after else ""
            contexts.append(self.gap.join(side.strip() for side in (head, tail) if side.strip()))
        return contexts
