"""How much a judge's scores vary when it judges again."""

from dataclasses import replace
from typing import Any, cast

import numpy as np

from harness.components.roles import Judge
from harness.components.verdict import Verdict
from harness.evaluation.stats import Variance, variance_of_repeats
from harness.experiment.trial import Trial
from harness.llm import SWAPPED, Completion, Judgment, Task, stored
from harness.running.judging.judging import Judging


def judge_variance(judging: Judging, trial: Trial) -> dict[str, Variance]:
    """Return the variance components of each judge's first measure on a trial, for judges with repeats.

    They are computed over the queries that have a value in every repeat. The effect of passage order is included if
    at least two of them have also been judged in reverse order (`judge agree --swap` does that for a sample).
    """
    found = {}
    for pool, cases in judging.pool.cases(trial):
        prompter, judge = pool.prompter, pool.judge
        if prompter is None or judge.repeats < 2:
            continue
        once = cast(Judge, replace(cast(Any, judge), repeats=1))
        takes = [_as_only_take(judging, pool.name, take) for take in range(judge.repeats)]
        values = np.array([[_primary(once.score(case, known)) for known in takes] for case in cases])
        complete = ~np.isnan(values).any(axis=1)
        if complete.sum() < 2:
            continue
        tasks = [task._replace(take=SWAPPED) for task in pool.tasks if not task.take]
        reverse = stored(judging.answers, prompter, tasks)
        other = {task._replace(take=0): one for task, one in reverse.items() if not isinstance(one, Completion)}
        swapped = np.array([_primary(once.score(case, {**takes[0], **other})) for case in cases])
        both = complete & ~np.isnan(swapped)
        found[pool.name] = (
            variance_of_repeats(values[both], swapped[both])
            if both.sum() >= 2
            else variance_of_repeats(values[complete])
        )
    return found


def _as_only_take(judging: Judging, label: str, take: int) -> dict[Task, Judgment]:
    """The judgments of one repeat, as if it were the only one."""
    return {task._replace(take=0): one for task, one in judging.judgments[label].items() if task.take == take}


def _primary(verdict: Verdict) -> float:
    """The value of a judge's first measure; NaN if there is none."""
    score = next(iter(verdict.scores.values()))
    return float("nan") if score is None or score.value is None else score.value
