"""The augmenter role: add a context to each chunk."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from harness.components.component import Component
from harness.core.records import Document
from harness.llm.answers import Outcome as Answer
from harness.llm.prompter import Task


class BaseAugmenter(Component):
    """The role of all augmenters; derive a new one from Augmenter or LlmAugmenter."""

    role: ClassVar[str] = "augmenter"
    adds_context: ClassVar[bool] = True
    """Whether it may add anything; if not, chunks are indexed as they are and nothing is stored."""

    def questions(self, doc: Document, spans: Sequence[tuple[int, int]]) -> Sequence[Task]:
        """Return the questions for the augmenter's language model, one per span; none unless it uses one."""
        return ()

    @abstractmethod
    def contexts(self, doc: Document, spans: Sequence[tuple[int, int]], answers: Sequence[Answer]) -> list[str]:
        """Return one context per span, in order; `answers` has an answer or a failure per question."""


class Augmenter(BaseAugmenter):
    """Adds to each chunk a context that is indexed with it but never counted as evidence."""

    @abstractmethod
    def augment(self, doc: Document, spans: Sequence[tuple[int, int]]) -> list[str]:
        """Return one context per span, in order; an empty string means no context."""

    def contexts(self, doc: Document, spans: Sequence[tuple[int, int]], answers: Sequence[Answer]) -> list[str]:
        """Return what `augment` returns."""
        return self.augment(doc, spans)
