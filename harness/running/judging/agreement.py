"""How a judge's relevant/irrelevant compares with people's: one record, whatever the labels come from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.components.labels import Labels
from harness.core.errors import DataError
from harness.evaluation.stats.rater_agreement import Confusion, graded_kappa, kappa_interval
from harness.evaluation.stats.rates import Estimate, wilson
from harness.storage.digest import digest

RELEVANT_FROM = 2


@dataclass(frozen=True)
class Corrected:
    """A trial's context precision as the judge has it and as people would, and its difference to the baseline.

    Over the sheet's queries; `judged` is None where judgments are missing.
    """

    trial: str
    judged: float | None
    corrected: Estimate | None
    judged_difference: float | None
    difference: Estimate | None


@dataclass(frozen=True)
class Agreement:
    """How a judge's relevant/irrelevant compares with people's, on the passages that both have graded.

    `missing` passages graded by people have no judgment and are left out here (not from the corrected means). `graded`
    is kappa over all grades, unweighted. Flip rates are shares of judgments that change sides; None where they were not
    measured. `trials` are empty without a sheet.
    """

    judge: str
    model: str
    labels: int
    missing: int
    relevant_from: int
    kappa: Estimate
    sensitivity: Estimate
    specificity: Estimate
    confusion: Confusion
    grades: Sequence[Sequence[int]]
    """Counts by people's grade (row) and the judge's (column)."""
    graded: float
    swap_flips: Estimate | None = None
    repeat_flips: float | None = None
    trials: Sequence[Corrected] = ()
    baseline: str = ""
    calibrated_on: int = 0
    """Labels of the best calibration known, which reports tell."""
    notes: Sequence[str] = ()
    """What keeps means from being corrected, or what the correction leaves out."""


def agreement_of(
    judge: str, model: str, pairs: Sequence[tuple[str, int, int]], *, missing: int, relevant_from: int
) -> Agreement:
    """The agreement on passages given as (query, people's grade, judge's grade); queries are the units of its interval.

    Raises DataError where there is no pair.
    """
    if not pairs:
        raise DataError("judge agree: no passage graded by people has a judgment")
    queries = [query for query, _, _ in pairs]
    people = np.array([grade >= relevant_from for _, grade, _ in pairs])
    says = np.array([grade >= relevant_from for _, _, grade in pairs])
    table = Confusion.of(people, says)
    size = 1 + max(3, *(max(theirs, ours) for _, theirs, ours in pairs))
    by_grade = np.zeros((size, size), np.int64)
    for _, theirs, ours in pairs:
        by_grade[theirs, ours] += 1
    return Agreement(
        judge,
        model,
        len(pairs),
        missing,
        relevant_from,
        kappa_interval(people, says, queries, seed=int(digest(queries)[:8], 16)),
        wilson(table.both, table.both + table.people_only),
        wilson(table.neither, table.neither + table.judge_only),
        table,
        by_grade.tolist(),
        graded_kappa(by_grade),
    )


def labels_agreement(judge: Labels, people: Labels, *, relevant_from: int = RELEVANT_FROM) -> Agreement:
    """The agreement of two files of labels, on the (query, passage) pairs that both have.

    Several grades of one pair are taken in order, each with the other file's. Raises DataError where none is shared.
    """
    pairs, missing, several = [], 0, 0
    for (query, passage), grades in people.grades.items():
        known = judge.grades.get((query, passage), ())
        pairs += [(query, theirs, ours) for theirs, ours in zip(grades, known, strict=False)]
        missing += max(0, len(grades) - len(known))
        several += len(known) > 0 and max(len(grades), len(known)) > 1
    if not pairs:
        message = " and ".join(f"{one.path.name} has {next(iter(one.grades))!r:.60}" for one in (people, judge))
        raise DataError(f"judge agree: no passage is in both files: {message}")
    found = agreement_of(judge.path.stem, "labels", pairs, missing=missing, relevant_from=relevant_from)
    return replace(found, notes=[*_unjudged(people, judge), *_several(several)])


def _unjudged(*files: Labels) -> list[str]:
    return [f"{one.path.name}: {one.unjudged} lines of a grade below 0 are left out" for one in files if one.unjudged]


def _several(count: int) -> list[str]:
    message = (
        f"{count} passages are graded more than once: the first grades of both files are compared, then the second"
    )
    return [message] if count else []
