"""Compare a judge with people: its agreement with their grades, and its means corrected with them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict, Unpack

from harness.components.labels import Labels
from harness.components.roles import Judge, judge_measures
from harness.core.errors import ConfigError, DataError
from harness.core.records import Case, Chunk
from harness.evaluation.stats.rates import Estimate, wilson
from harness.experiment.experiment import Experiment
from harness.llm import (
    SWAPPED,
    BatchRunner,
    Failure,
    Judgment,
    Label,
    Prompter,
    Task,
    estimate,
    missing,
    stored,
)
from harness.running.judging.agreement import Agreement, agreement_of
from harness.running.judging.agreement_store import keep_agreement
from harness.running.judging.corrected_means import GradedSheet, corrected_means
from harness.running.judging.grading_sample import finished_session, judged_depth
from harness.running.judging.grading_sheet import Row
from harness.running.judging.judging import Judging
from harness.running.models import Models, answers_of
from harness.running.session import Session
from harness.running.stages.model_access import labelled


class StudyOptions(TypedDict, total=False):
    """The options of a comparison of a judge with people."""

    store: Path | str | None
    """The folder of the store (default: HARNESS_STORE, else `.harness` in the project of the experiment)."""
    judge: str | None
    """The judge's label (default: the first that grades passages)."""
    models: Models | None
    """Limits what language models may cost."""
    notify: Callable[[str], None]
    """Receives a line with the expected cost before the first call."""


@dataclass(frozen=True)
class _Options:
    """The options with their defaults; see `StudyOptions`."""

    store: Path | str | None = None
    judge: str | None = None
    models: Models | None = None
    notify: Callable[[str], None] = lambda _: None


class _Study:
    """A judge of an experiment whose trials have run, and what it has judged."""

    def __init__(self, experiment: Experiment, given: _Options, *, asks_model: bool) -> None:
        models = given.models or Models()
        self.session = finished_session(experiment, given.store, "judge agree")
        self.label, self.judge = _judge(experiment, given.judge, asks_model=asks_model)
        self.line = 2 if self.judge.relevant_from is None else self.judge.relevant_from
        self.caller = models.caller(answers_of(self.session), given.notify)
        self.judging = Judging(self.session, self.caller.answers, price=models.price)
        self._price, self._notify = models.price, given.notify

    @property
    def prompter(self) -> Prompter | None:
        """What asks the judge's language model."""
        return self.judge.prompter

    def ask(self, tasks: Sequence[Task]) -> None:
        """Report the cost of the judgments that are not stored, and request them."""
        assert self.prompter is not None
        left = missing(self.judging.answers, self.prompter, tasks)
        cost = estimate(self.judging.answers, self.prompter, left, self._price)
        self._notify(cost.summary(labelled(self.judge)))
        BatchRunner(self.caller).ask([(self.prompter, tasks)], "judge")

    def known(self, tasks: Sequence[Task]) -> dict[Task, Judgment]:
        """Return the stored judgments."""
        assert self.prompter is not None
        found = stored(self.caller.answers, self.prompter, tasks)
        return {task: judgment for task, judgment in found.items() if isinstance(judgment, Label | Failure)}

    def swapped(self, questions: set[str]) -> list[Task]:
        """Return the tasks of questions with the passages in reverse order."""
        pool = next(pool for pool in self.judging.pool.by_judge if pool.name == self.label)
        return [task._replace(take=SWAPPED) for task in pool.tasks if task.query in questions and task.take == 0]


def agree(
    experiment: Experiment, rows: Sequence[Row], *, swap: bool = False, **options: Unpack[StudyOptions]
) -> Agreement:
    """Return a judge's agreement with the grades of a sheet, and its corrected means. Reports then show the agreement.

    Missing judgments of the sheet's passages are requested. With `swap`, the sheet's queries are judged again with the
    passages in reverse order. Raises ConfigError if the trials have not run or there is no such judge, DataError if the
    sheet has no grades or a query that is not in the data.
    """
    graded = [row for row in rows if row.grade is not None]
    study = _Study(experiment, _Options(**options), asks_model=True)
    if not graded:
        raise DataError("judge agree: the sheet has no grades; add them with `harness judge label`")
    grader, prompter, session = study.judge, study.prompter, study.session
    assert prompter is not None
    cases = {case.query.id: case for case in session.outputs(session.trials[0]).cases()}
    unknown = [row.query for row in graded if row.query not in cases or cases[row.query].query.text != row.question]
    if unknown:
        raise DataError(f"judge agree: the sheet's query '{unknown[0]}' is not one of '{experiment.base.data}'")
    single = [replace(cases[row.query], passages=(Chunk("", 0, 0, row.passage),)) for row in graded]
    wanted = [task for case in single for task in grader.tasks(case)]
    swapped = study.swapped({row.question for row in graded}) if swap else []
    study.ask([*wanted, *swapped])
    known = study.known(wanted)
    grades = {row: _grade(grader, case, known) for row, case in zip(graded, single, strict=True)}
    found = [row for row in graded if grades[row] is not None]
    pairs = [(row.query, row.grade or 0, grades[row] or 0) for row in found]
    sheet = GradedSheet(study.judging, study.label, rows, study.line)
    named, corrected, uncorrected = corrected_means(session, sheet)
    made = replace(
        agreement_of(study.label, prompter.model, pairs, missing=len(graded) - len(found), relevant_from=study.line),
        swap_flips=_swap_flips(study, swapped),
        repeat_flips=study.judging.flips(study.label),
        trials=corrected,
        baseline=named,
        notes=uncorrected,
    )
    kept = {"labels": made.labels, "kappa": made.kappa.value, "low": made.kappa.low, "high": made.kappa.high}
    best = keep_agreement(grader, session.store, session.data, kept)
    return replace(made, calibrated_on=best)


def agree_with_labels(experiment: Experiment, people: Labels, **options: Unpack[StudyOptions]) -> Agreement:
    """Return a judge's agreement with people's labels from a file, on all passages that the experiment's trials select.

    A passage is matched by its span, its document or its text, whichever the file contains; equal texts in two places
    are two passages. Missing judgments are requested. Raises ConfigError if the trials have not run or there is no such
    judge, DataError if the file grades none of the passages.
    """
    study = _Study(experiment, _Options(**options), asks_model=False)
    grader = study.judge
    pairs: list[tuple[Case, int]] = []
    for query, passages in _selected(study.session).items():
        for case in passages.values():
            (chunk,) = case.passages
            grades = people.of((query, case.query.text), (chunk.id, chunk.doc, chunk.text))
            pairs += [(case, grade) for grade in grades]
    if not pairs:
        raise DataError(f"judge agree: {people.path} grades no passage that the trials of '{experiment.name}' select")
    wanted = list(dict.fromkeys(task for case, _ in pairs for task in grader.tasks(case)))
    if study.prompter:
        study.ask(wanted)
        known = study.known(wanted)
    else:
        known = dict(grader.decide(wanted, study.judging.embed))
    graded = [(case, grade, _grade(grader, case, known)) for case, grade in pairs]
    found = [(case.query.id, people, judged) for case, people, judged in graded if judged is not None]
    missing_here = len(graded) - len(found)
    return agreement_of(study.label, grader.grader, found, missing=missing_here, relevant_from=study.line)


def _selected(session: Session) -> dict[str, dict[str, Case]]:
    """By query and passage id, a case for each passage that any trial selected, within the ranks that judges use."""
    found: dict[str, dict[str, Case]] = {}
    depth = judged_depth(session.experiment)
    for trial in session.trials:
        for case in session.outputs(trial).cases():
            passages = found.setdefault(case.query.id, {})
            for passage in case.passages[:depth]:
                passages.setdefault(passage.id, replace(case, passages=(passage,)))
    return found


def _judge(experiment: Experiment, wanted: str | None, *, asks_model: bool) -> tuple[str, Judge]:
    """The wanted judge and its label, by default the first that grades passages; `asks_model` leaves out the others."""
    found = {
        label: judge
        for label, judge, _ in judge_measures(experiment.base.judges).values()
        if judge.relevant_from is not None and (judge.prompter or not asks_model)
    }
    if not found or (wanted and wanted not in found):
        known = ", ".join(found) or "none"
        name = wanted or "context_precision"
        raise ConfigError(f"judge agree: no judge '{name}' that grades passages; available: {known}")
    label = wanted or next(iter(found))
    return label, found[label]


def _grade(judge: Judge, case: Case, known: Mapping[Task, Judgment]) -> int | None:
    """The judge's grade of a case's only passage, from the first repeat; None if that failed."""
    judgment = judge.score(case, known).findings[0].judgments[0]
    return None if isinstance(judgment, Failure) else judgment.grade


def _swap_flips(study: _Study, swapped: Sequence[Task]) -> Estimate | None:
    if not swapped:
        return None
    there, plain = study.known(swapped), study.known([task._replace(take=0) for task in swapped])
    pairs = [(there[task], plain[task._replace(take=0)]) for task in swapped]
    sides = [
        (a.grade >= study.line, b.grade >= study.line)
        for a, b in pairs
        if isinstance(a, Label) and isinstance(b, Label)
    ]
    return wilson(sum(a != b for a, b in sides), len(sides))
