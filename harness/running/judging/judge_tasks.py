"""The tasks of one judge, pooled over all trials of a launch."""

from dataclasses import dataclass, field

from harness.components.roles import Judge
from harness.llm.prompter import Prompter, Task


@dataclass
class JudgeTasks:
    """The distinct tasks of one judge over all trials, in a dict used as an ordered set.

    `naive` is the number of calls if each trial were judged separately, `empty` the number of cases without passages.
    """

    name: str
    judge: Judge
    tasks: dict[Task, None] = field(default_factory=dict)
    naive: int = 0
    empty: int = 0

    @property
    def prompter(self) -> Prompter | None:
        """What asks a language model for the judgments; None if the judge decides itself."""
        return self.judge.prompter
