"""Asking a language model what stages need, before they run: all questions of one kind together."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from harness.running.stages.model_access import ModelAccess, Questions
from harness.running.stages.stage import ModelStage
from harness.running.stages.workspace import Workspace


@dataclass(frozen=True, eq=False)
class AskStage(ModelStage):
    """A stage that needs answers of a component's language model."""

    title: ClassVar[str] = "ask"

    @abstractmethod
    def questions(self, work: Workspace) -> Questions:
        """Return the questions that the component has, in corpus order; its inputs must be stored."""

    @classmethod
    def fetch(cls, stages: Sequence[tuple[Self, Workspace]], models: ModelAccess) -> None:
        """Ask for the answers that are not stored."""
        models.ask([stage.questions(work) for stage, work in stages], cls.title)
