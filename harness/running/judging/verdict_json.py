"""Convert verdicts to arrays and JSON, and compare repeated judgments."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.components.roles import Judge
from harness.components.verdict import Finding, Score, Verdict
from harness.core.records import Floats
from harness.llm import Failure, Judgment, Label, Task


def column(scores: Sequence[Score | None], side: str) -> Floats:
    """Return one field (`value`, `low` or `high`) of the scores as an array (queries,), with NaN for None."""
    values = (None if score is None else getattr(score, side) for score in scores)
    return np.array([np.nan if value is None else value for value in values], np.float64)


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as JSON: scores with bounds, the judgments of each passage or item, and flags."""
    return {
        "scores": {name: None if score is None else score._asdict() for name, score in verdict.scores.items()},
        "findings": [
            {("rank" if finding.rank is not None else "item"): finding.rank or finding.item}
            | {"judgments": judgments_json(finding)}
            for finding in verdict.findings
        ],
        "flags": list(verdict.flags),
    }


def judgments_json(finding: Finding) -> list[dict[str, Any]]:
    """Return the judgments of one passage or item as JSON."""
    return [_judgment_json(judgment) for judgment in finding.judgments]


def _judgment_json(judgment: Judgment) -> dict[str, Any]:
    if isinstance(judgment, Failure):
        return {"failed": judgment.kind, "detail": judgment.detail}
    known: dict[str, Any] = {"grade": judgment.grade, "why": judgment.why, "quote": judgment.quote, "by": judgment.by}
    record = {name: value for name, value in known.items() if value != ""}
    return record | ({"flags": list(judgment.flags)} if judgment.flags else {})


def flips(judge: Judge, judgments: Mapping[Task, Judgment]) -> float | None:
    """Return the fraction of repeatedly judged tasks whose judgments disagree; None without repeats.

    If the judge has a threshold of relevance, judgments disagree if they are on different sides of it.
    """
    if judge.repeats < 2:
        return None
    line = judge.relevant_from
    sides: dict[Task, list[int]] = {}
    for task, judgment in judgments.items():
        if isinstance(judgment, Label):
            sides.setdefault(task._replace(take=0), []).append(
                judgment.grade if line is None else judgment.grade >= line
            )
    repeated = [found for found in sides.values() if len(found) > 1]
    return sum(len(set(found)) > 1 for found in repeated) / len(repeated) if repeated else None
