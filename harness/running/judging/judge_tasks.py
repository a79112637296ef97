"""What one judge has to judge in all trials of a launch, each distinct thing once."""

from dataclasses import dataclass, field

from harness.components.llm_roles import LlmJudge
from harness.components.roles import Judge
from harness.llm.prompter import Task


@dataclass
class JudgeTasks:
    """What one judge has to judge in all trials: distinct tasks, and the calls it would take trial by trial."""

    name: str
    judge: Judge
    tasks: dict[Task, None] = field(default_factory=dict)
    naive: int = 0
    empty: int = 0

    @property
    def prompter(self) -> LlmJudge | None:
        return self.judge if isinstance(self.judge, LlmJudge) else None
