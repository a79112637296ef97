"""The stage that has a trial judged."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol, Self

from harness.running.stages.model_access import ModelAccess
from harness.running.stages.score import Score
from harness.running.stages.stage import ModelStage, Stage
from harness.running.stages.workspace import Workspace
from harness.storage.digest import digest


class Judges(Protocol):
    """The judges of a launch."""

    def ask(self, models: ModelAccess) -> None:
        """Request the judgments of all trials that are not stored."""
        ...


@dataclass(frozen=True, eq=False)
class AskJudges(ModelStage):
    """Requests the judgments of one trial's selections. Those of all trials are pooled, and each is requested once.

    It follows the scores, so that nothing is paid for a trial that cannot be scored.
    """

    turn: ClassVar[int] = 60
    scores: Score
    judges: Judges

    @cached_property
    def address(self) -> str:
        """The digest of the scores' address and the stage's name."""
        return digest({"stage": "judge", "scores": self.scores.address})

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The scores."""
        return (self.scores,)

    @classmethod
    def fetch(cls, stages: Sequence[tuple[Self, Workspace]], models: ModelAccess) -> None:
        """Request the judgments that are not stored."""
        stages[0][0].judges.ask(models)
