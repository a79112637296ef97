"""The judge role: score how good a selection is for a query."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Literal

from harness.components.component import Component, declared, step_labels
from harness.components.verdict import Verdict
from harness.core.errors import ConfigError
from harness.core.records import Case, Vectors
from harness.llm.answers import Judgment
from harness.llm.prompter import Prompter, Task


class Judge(Component):
    """Scores how good a selection is for a query. A failed judgment stays a failure and never becomes a number.

    `measures` are the names of its scores, the primary metric first. The attributes below have defaults that a judge
    may override, or make settings. If more than the fraction `max_failed` of the queries has no value, no mean is
    reported.
    """

    role: ClassVar[str] = "judge"
    measures: ClassVar[tuple[str, ...]] = ()
    k: int | None = declared(None)
    """It looks at the first `k` passages; None if it looks at all."""
    of: Literal["evidence", "answer"] | None = declared(None)
    """What it looks for in the passages: the items of evidence or the claims of the reference answer; else None."""
    relevant_from: int | None = declared(None)
    """The lowest grade of a relevant passage; None if it does not grade passages."""
    repeats: int = declared(1)
    """How often each task is judged; the scores are averaged."""
    batch: int = declared(0)
    """The maximum number of passages in one call of its language model; 0 if there is no such setting."""
    divided_by_k: ClassVar[tuple[str, ...]] = ()
    """The measures that divide by the judge's `k` even if fewer passages are selected."""

    def caution(self) -> str:
        """A caution for readers of scores from a judge that uses no model; empty if there is none."""
        return ""

    @property
    def grader(self) -> str:
        """What made its judgments: the name of its model; empty if it has none."""
        return self.model

    def claims(self) -> Prompter | None:
        """Return the prompter that lists the claims of a reference answer, if it needs them; see `claims_task`."""
        return None

    def decide(self, tasks: Sequence[Task], embed: Callable[[Sequence[str]], Vectors]) -> Mapping[Task, Judgment]:
        """Return a judgment for each task, unless a language model judges them or `score` needs none.

        `embed` returns unit vectors of texts, (texts, dimensions) float32.
        """
        return {}

    @abstractmethod
    def tasks(self, case: Case) -> Sequence[Task]:
        """The tasks to judge before `score` is called; empty if none is needed."""

    @abstractmethod
    def score(self, case: Case, judgments: Mapping[Task, Judgment]) -> Verdict:
        """Return the scores of one query, given a judgment for each of its tasks."""


def judge_measures(judges: Sequence[Judge]) -> dict[str, tuple[str, Judge, str]]:
    """Map the name of each measure to the judge's label, the judge, and the judge's own name for the measure.

    If a judge occurs again, its measures get the same number as its label: `context_precision_2`. Raises ConfigError
    if two judges have a measure of the same name.
    """
    found: dict[str, tuple[str, Judge, str]] = {}
    for label, judge in zip(step_labels(judges), judges, strict=True):
        for measure in judge.measures:
            name = f"{measure}{label.removeprefix(judge.name())}"
            if name in found:
                raise ConfigError(
                    f"judges: {found[name][0]} and {label} both measure '{name}'; rename one's `measures`"
                )
            found[name] = (label, judge, measure)
    return found


class LocalJudge(Judge):
    """A judge that computes its judgments locally, without a language model server."""

    @abstractmethod
    def decide(self, tasks: Sequence[Task], embed: Callable[[Sequence[str]], Vectors]) -> Mapping[Task, Judgment]:
        """Return a judgment for each task; `embed` returns unit vectors of texts, (texts, dimensions) float32."""
