"""Compare a judge with people: its agreement with their grades, and its means corrected with them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.components.labels import Labels
from harness.components.roles import Judge, judge_measures
from harness.core.errors import ConfigError, DataError
from harness.core.records import Case, Chunk
from harness.evaluation.stats.rates import Estimate, wilson
from harness.experiment.experiment import Experiment
from harness.llm import (
    SWAPPED,
    BatchRunner,
    Caller,
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
from harness.running.judging.corrected_means import corrected_means
from harness.running.judging.grading_sample import finished_session, judged_depth
from harness.running.judging.grading_sheet import Row
from harness.running.judging.judging import Judging
from harness.running.models import Models, answers_of
from harness.running.session import Session


def agree(
    experiment: Experiment,
    rows: Sequence[Row],
    *,
    store: Path | str | None = None,
    judge: str | None = None,
    swap: bool = False,
    models: Models | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> Agreement:
    """Return a judge's agreement with the grades of a sheet, and its corrected means. Reports then show the agreement.

    Missing judgments of the sheet's passages are requested. With `swap`, the sheet's queries are judged again with the
    passages in reverse order. Raises ConfigError if the trials have not run or there is no such judge, DataError if the
    sheet has no grades or a query that is not in the data.
    """
    models = models or Models()
    session = finished_session(experiment, store, "judge agree")
    graded = [row for row in rows if row.grade is not None]
    if not graded:
        raise DataError("judge agree: the sheet has no grades; add them with `harness judge label`")
    label, grader = _judge(experiment, judge, asks_model=True)
    prompter = grader.prompter
    assert prompter is not None
    caller = models.caller(answers_of(session), notify)
    judging = Judging(session, caller.answers, price=models.price)
    cases = {case.query.id: case for case in session.outputs(session.trials[0]).cases()}
    unknown = [row.query for row in graded if row.query not in cases or cases[row.query].query.text != row.question]
    if unknown:
        raise DataError(f"judge agree: the sheet's query '{unknown[0]}' is not one of '{experiment.base.data}'")
    single = [replace(cases[row.query], passages=(Chunk("", 0, 0, row.passage),)) for row in graded]
    tasks = {row: grader.tasks(case) for row, case in zip(graded, single, strict=True)}
    wanted = [task for row in graded for task in tasks[row]]
    swapped = _swapped(judging, label, {row.question for row in graded}) if swap else []
    _notify(judging, grader, [*wanted, *swapped], models, notify)
    BatchRunner(caller).ask([(prompter, [*wanted, *swapped])], "judge")
    known = _known(caller, prompter, wanted)
    grades = {row: _grade(grader, case, known) for row, case in zip(graded, single, strict=True)}
    found = [row for row in graded if grades[row] is not None]
    line = 2 if grader.relevant_from is None else grader.relevant_from
    pairs = [(row.query, row.grade or 0, grades[row] or 0) for row in found]
    missing_here = len(graded) - len(found)
    named, corrected, uncorrected = corrected_means(session, judging, label, grader, rows, line)
    made = replace(
        agreement_of(label, prompter.model, pairs, missing=missing_here, relevant_from=line),
        swap_flips=_swap_flips(caller, prompter, swapped, line),
        repeat_flips=judging.flips(label),
        trials=corrected,
        baseline=named,
        notes=uncorrected,
    )
    kept = {"labels": made.labels, "kappa": made.kappa.value, "low": made.kappa.low, "high": made.kappa.high}
    best = keep_agreement(grader, session.store, session.data, kept)
    return replace(made, calibrated_on=best)


def agree_with_labels(
    experiment: Experiment,
    people: Labels,
    *,
    store: Path | str | None = None,
    judge: str | None = None,
    models: Models | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> Agreement:
    """Return a judge's agreement with people's labels from a file, on all passages that the experiment's trials select.

    A passage is matched by its span, its document or its text, whichever the file contains; equal texts in two places
    are two passages. Missing judgments are requested. Raises ConfigError if the trials have not run or there is no such
    judge, DataError if the file grades none of the passages.
    """
    models = models or Models()
    session = finished_session(experiment, store, "judge agree")
    label, grader = _judge(experiment, judge, asks_model=False)
    caller = models.caller(answers_of(session), notify)
    judging = Judging(session, caller.answers, price=models.price)
    pairs: list[tuple[Case, int]] = []
    for query, passages in _selected(session).items():
        for case in passages.values():
            (chunk,) = case.passages
            grades = people.of((query, case.query.text), (chunk.id, chunk.doc, chunk.text))
            pairs += [(case, grade) for grade in grades]
    if not pairs:
        raise DataError(f"judge agree: {people.path} grades no passage that the trials of '{experiment.name}' select")
    wanted = list(dict.fromkeys(task for case, _ in pairs for task in grader.tasks(case)))
    if grader.prompter:
        _notify(judging, grader, wanted, models, notify)
        BatchRunner(caller).ask([(grader.prompter, wanted)], "judge")
        known = _known(caller, grader.prompter, wanted)
    else:
        known = dict(grader.decide(wanted, judging.embed))
    graded = [(case, grade, _grade(grader, case, known)) for case, grade in pairs]
    found = [(case.query.id, people, judged) for case, people, judged in graded if judged is not None]
    line = 2 if grader.relevant_from is None else grader.relevant_from
    return agreement_of(label, grader.grader, found, missing=len(graded) - len(found), relevant_from=line)


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


def _notify(
    judging: Judging, judge: Judge, tasks: Sequence[Task], models: Models, notify: Callable[[str], None]
) -> None:
    assert judge.prompter is not None
    left = missing(judging.answers, judge.prompter, tasks)
    cost = estimate(judging.answers, judge.prompter, left, models.price)
    notify(cost.summary(f"{judge.name()} ({judge.model})"))


def _swapped(judging: Judging, label: str, questions: set[str]) -> list[Task]:
    pool = next(pool for pool in judging.pool.by_judge if pool.name == label)
    return [task._replace(take=SWAPPED) for task in pool.tasks if task.query in questions and task.take == 0]


def _known(caller: Caller, prompter: Prompter, tasks: Sequence[Task]) -> dict[Task, Judgment]:
    return {t: j for t, j in stored(caller.answers, prompter, tasks).items() if isinstance(j, Label | Failure)}


def _grade(judge: Judge, case: Case, known: Mapping[Task, Judgment]) -> int | None:
    """The judge's grade of a case's only passage, from the first repeat; None if that failed."""
    judgment = judge.score(case, known).findings[0].judgments[0]
    return None if isinstance(judgment, Failure) else judgment.grade


def _swap_flips(caller: Caller, prompter: Prompter, swapped: Sequence[Task], line: int) -> Estimate | None:
    if not swapped:
        return None
    there = _known(caller, prompter, swapped)
    plain = _known(caller, prompter, [task._replace(take=0) for task in swapped])
    pairs = [(there[task], plain[task._replace(take=0)]) for task in swapped]
    sides = [(a.grade >= line, b.grade >= line) for a, b in pairs if isinstance(a, Label) and isinstance(b, Label)]
    return wilson(sum(a != b for a, b in sides), len(sides))
