"""Agreement between a judge and people on which passages are relevant."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.components.labels import Labels
from harness.core.errors import DataError
from harness.core.plurals import plural
from harness.evaluation.stats.rater_agreement import Confusion, graded_kappa, kappa_interval
from harness.evaluation.stats.rates import Estimate, wilson
from harness.storage.digest import digest

RELEVANT_FROM = 2
"""The default lowest grade that counts as relevant."""


@dataclass(frozen=True)
class Corrected:
    """A trial's mean over the sheet's queries, by the judge and corrected towards people, with its differences.

    `judged` is the judge's mean, `corrected` the estimate of what people would give. `judged_difference` and
    `difference` are the same for the difference from the baseline. The judge's values are None if judgments are
    missing, the corrected ones if there are too few grades; the baseline has no corrected difference.
    """

    trial: str
    judged: float | None
    corrected: Estimate | None
    judged_difference: float | None
    difference: Estimate | None


@dataclass(frozen=True)
class Agreement:
    """The agreement of a judge with people on the passages that both have graded: relevant or irrelevant.

    A grade of at least `relevant_from` is relevant. `missing` is the number of passages graded by people but not by the
    judge; they are excluded here, but not from the corrected means. `kappa` is for relevant/irrelevant, `graded` is the
    unweighted kappa over all grades. `swap_flips` and `repeat_flips` are the fractions of judgments that change when
    passages are in reverse order or the judge is asked again; None if not measured. `trials` is empty without a sheet.
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
    """The number of labels of the largest stored agreement, the one that reports show."""
    notes: Sequence[str] = ()
    """Why means are not corrected, or what the correction leaves out."""


def agreement_of(
    judge: str, model: str, pairs: Sequence[tuple[str, int, int]], *, missing: int, relevant_from: int
) -> Agreement:
    """Return the agreement on passages given as (query, people's grade, judge's grade).

    The interval of kappa resamples queries. Raises DataError if there are no pairs.
    """
    if not pairs:
        raise DataError("judge agree: no passage graded by people has a judgment")
    queries = [query for query, _, _ in pairs]
    people = np.array([grade >= relevant_from for _, grade, _ in pairs])
    judged = np.array([grade >= relevant_from for _, _, grade in pairs])
    table = Confusion.of(people, judged)
    size = 1 + max(3, *(max(human, machine) for _, human, machine in pairs))
    by_grade = np.zeros((size, size), np.int64)
    for _, human, machine in pairs:
        by_grade[human, machine] += 1
    return Agreement(
        judge,
        model,
        len(pairs),
        missing,
        relevant_from,
        kappa_interval(people, judged, queries, seed=int(digest(queries)[:8], 16)),
        wilson(table.both, table.both + table.people_only),
        wilson(table.neither, table.neither + table.judge_only),
        table,
        by_grade.tolist(),
        graded_kappa(by_grade),
    )


def labels_agreement(judge: Labels, people: Labels, *, relevant_from: int = RELEVANT_FROM) -> Agreement:
    """Return the agreement of two label files on the (query, passage) pairs that both contain.

    If a pair has several grades, the first grades of both files are compared, then the second. Raises DataError if the
    files share no pair.
    """
    pairs, missing, several = [], 0, 0
    for (query, passage), grades in people.grades.items():
        known = judge.grades.get((query, passage), ())
        pairs += [(query, human, machine) for human, machine in zip(grades, known, strict=False)]
        missing += max(0, len(grades) - len(known))
        several += len(known) > 0 and max(len(grades), len(known)) > 1
    if not pairs:
        message = " and ".join(f"{one.path.name} has {next(iter(one.grades))!r:.60}" for one in (people, judge))
        raise DataError(f"judge agree: no passage is in both files: {message}")
    found = agreement_of(judge.path.stem, "labels", pairs, missing=missing, relevant_from=relevant_from)
    return replace(found, notes=[*_unjudged(people, judge), *_several(several)])


def _unjudged(*files: Labels) -> list[str]:
    return [f"{one.path.name}: {one.unjudged} lines with a grade below 0 are left out" for one in files if one.unjudged]


def _several(count: int) -> list[str]:
    message = f"{plural(count, 'passage', 'is')} graded more than once: "
    message += "the first grades of both files are compared, then the second"
    return [message] if count else []
