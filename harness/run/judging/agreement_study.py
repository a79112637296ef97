"""A judge against people: passages drawn for them to grade, their agreement with it, and its means corrected by it."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.components.labels import Labels
from harness.components.llm_roles import LlmJudge
from harness.components.roles import Judge, LocalJudge, judge_measures
from harness.core.errors import ConfigError, DataError
from harness.core.records import Case, Chunk, Floats
from harness.evaluation.stats.rater_agreement import Estimate, ppi_by_query, wilson
from harness.experiment.experiment import Experiment
from harness.experiment.params import find_baseline
from harness.experiment.trial import Trial
from harness.llm import SWAPPED, Caller, Failure, Judgment, Label, Panel, Task, estimate, missing, stored
from harness.run.judging.agreement import Agreement, Corrected, agreement_of
from harness.run.judging.agreement_store import keep_calibration
from harness.run.judging.grading_sheet import Row
from harness.run.judging.judging import Judging
from harness.run.models import Models, archive_of
from harness.run.session import Session, store_folder
from harness.storage.digest import digest

FEWEST = 50
"""Grades below which no mean is corrected."""


def sample(
    experiment: Experiment,
    *,
    store: Path | str | None = None,
    per_query: int = 2,
    queries: int | None = None,
    seed: int = 0,
) -> list[Row]:
    """Passages for people to grade: of each query `per_query`, at random from all that any trial selected.

    Every passage of a query's pool has the same chance, whichever trials found it and wherever it ranked; that is what
    makes the corrected means of all trials unbiased. Raises ConfigError where a trial has not run.
    """
    if per_query < 1 or (queries is not None and queries < 1):
        raise ConfigError("judge sample: --per-query and --queries: expected at least 1")
    session = _run_session(experiment, store, "judge sample")
    pools = _pools(session)
    asked = {case.query.id: case for case in session.pipeline(session.trials[0]).cases(session.trials[0])}
    ids = sorted(query for query, pool in pools.items() if pool)
    chosen = random.Random(f"queries {seed}").sample(ids, min(queries, len(ids))) if queries else ids
    rows = []
    for query in sorted(chosen):
        texts, known = sorted(pools[query]), digest(sorted(pools[query]))[:16]
        drawn = random.Random(f"{seed} {query}").sample(texts, min(per_query, len(texts)))
        about = asked[query].query
        rows += [Row(query, about.text, about.answer or "", text, len(texts), len(drawn), known) for text in drawn]
    return rows


def agree(
    experiment: Experiment,
    rows: Sequence[Row],
    *,
    store: Path | str | None = None,
    judge: str | None = None,
    swap: bool = False,
    models: Models | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Agreement:
    """How a judge agrees with the grades of a sheet, and what its means become. Remembered: reports then tell it.

    Judgments of the sheet's passages that are not stored are asked for; with `swap`, those of its queries are asked
    for once more with the passages in reverse order. Raises ConfigError or DataError for what does not fit together.
    """
    models = models or Models()
    session = _run_session(experiment, store, "judge agree")
    graded = [row for row in rows if row.grade is not None]
    if not graded:
        raise DataError("judge agree: the sheet has no grade; `harness judge label` gives them")
    label, asking = _judge(experiment, judge)
    caller = models.caller(archive_of(session), tell)
    judging = Judging(session, caller.archive, price=models.price)
    cases = {case.query.id: case for case in session.pipeline(session.trials[0]).cases(session.trials[0])}
    strangers = [row.query for row in graded if row.query not in cases or cases[row.query].query.text != row.question]
    if strangers:
        raise DataError(f"judge agree: the sheet's query '{strangers[0]}' is not one of '{experiment.base.data}'")
    single = [replace(cases[row.query], passages=(Chunk("", 0, 0, row.passage),)) for row in graded]
    tasks = {row: asking.tasks(case) for row, case in zip(graded, single, strict=True)}
    wanted = [task for row in graded for task in tasks[row]]
    swapped = _swapped(judging, label, {row.question for row in graded}) if swap else []
    _tell(judging, asking, [*wanted, *swapped], models, tell)
    Panel(caller).ask([(asking, [*wanted, *swapped])], "judge")
    known = _known(caller, asking, wanted)
    grades = {row: _grade(asking, case, known) for row, case in zip(graded, single, strict=True)}
    found = [row for row in graded if grades[row] is not None]
    line = int(getattr(asking, "relevant_from", 2))
    pairs = [(row.query, row.grade or 0, grades[row] or 0) for row in found]
    missing_here = len(graded) - len(found)
    named, corrected, uncorrected = _corrected(session, judging, label, asking, rows, line)
    made = replace(
        agreement_of(label, asking.model, pairs, missing=missing_here, relevant_from=line),
        swap_flips=_swap_flips(caller, asking, swapped, line),
        repeat_flips=judging.flips(label),
        trials=corrected,
        baseline=named,
        notes=uncorrected,
    )
    kept = {"labels": made.labels, "kappa": made.kappa.value, "low": made.kappa.low, "high": made.kappa.high}
    best = keep_calibration(asking, session.store, session.data, kept)
    return replace(made, calibrated_on=best)


def agree_with_labels(
    experiment: Experiment,
    people: Labels,
    *,
    store: Path | str | None = None,
    judge: str | None = None,
    models: Models | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Agreement:
    """How a judge of the experiment agrees with people's labels in a file, on all passages its trials select.

    A passage goes by its place, its document or its text, whichever the file has; passages of equal text in two places
    are two. What the judge has not said is asked for. Raises ConfigError or DataError for what does not fit together.
    """
    models = models or Models()
    session = _run_session(experiment, store, "judge agree")
    label, grader = _judge(experiment, judge, (LlmJudge, LocalJudge))
    caller = models.caller(archive_of(session), tell)
    judging = Judging(session, caller.archive, price=models.price)
    pairs: list[tuple[Case, int]] = []
    for query, passages in _selected(session).items():
        for case in passages.values():
            (chunk,) = case.passages
            grades = people.of((query, case.query.text), (chunk.id, chunk.doc, chunk.text))
            pairs += [(case, grade) for grade in grades]
    if not pairs:
        raise DataError(f"judge agree: {people.path} grades no passage that the trials of '{experiment.name}' select")
    wanted = list(dict.fromkeys(task for case, _ in pairs for task in grader.tasks(case)))
    if isinstance(grader, LlmJudge):
        _tell(judging, grader, wanted, models, tell)
        Panel(caller).ask([(grader, wanted)], "judge")
        known = _known(caller, grader, wanted)
    else:
        known = dict(grader.decide(wanted, judging.embed))
    graded = [(case, grade, _grade(grader, case, known)) for case, grade in pairs]
    found = [(case.query.id, people, judged) for case, people, judged in graded if judged is not None]
    line = int(getattr(grader, "relevant_from", 2))
    model = str(getattr(grader, "model", "")) or Path(str(getattr(grader, "labels", ""))).stem
    return agreement_of(label, model, found, missing=len(graded) - len(found), relevant_from=line)


def _selected(session: Session) -> dict[str, dict[str, Case]]:
    """The passages that any trial selected for each query, as deep as judges look, each as a case of its own."""
    found: dict[str, dict[str, Case]] = {}
    depth = _depth(session.experiment)
    for trial in session.trials:
        for case in session.pipeline(trial).cases(trial):
            passages = found.setdefault(case.query.id, {})
            for passage in case.passages[:depth]:
                passages.setdefault(passage.id, replace(case, passages=(passage,)))
    return found


def claims(
    experiment: Experiment, store: Path | str | None, models: Models, tell: Callable[[str], None]
) -> Mapping[str, Sequence[str]]:
    """The claims of each query's reference answer, asked for where they are not stored."""
    session = Session(experiment, store_folder(store))
    caller = models.caller(archive_of(session), tell)
    judging = Judging(session, caller.archive, price=models.price)
    if not judging.claims:
        raise ConfigError("judge claims: no judge of the experiment needs them; set `of: answer` for context_recall")
    listing = judging.claims.estimate()
    tell(listing.told("claims of reference answers"))
    judging.claims.ask(caller)
    return judging.claims.by_query()


def _run_session(experiment: Experiment, store: Path | str | None, command: str) -> Session:
    session = Session(experiment, store_folder(store))
    missing = sum(not session.pipeline(trial).stored(trial)["select"] for trial in session.trials)
    if missing:
        told = f"{missing} of {len(session.trials)} trials of '{experiment.name}' have not run"
        raise ConfigError(f"{command}: {told}; `harness run` does that")
    return session


def _depth(experiment: Experiment) -> int | None:
    """How deep the judges look into a selection; None for all of it."""
    depths = [getattr(judge, "k", None) for judge in experiment.base.judges]
    return None if not depths or None in depths else max(depth for depth in depths if depth)


def _judge(experiment: Experiment, wanted: str | None, kinds: tuple[type[Judge], ...] = (LlmJudge,)) -> tuple[str, Any]:
    """The judge of passages that is asked about, and its label."""
    found = {
        label: judge
        for label, judge, _ in judge_measures(experiment.base.judges).values()
        if isinstance(judge, kinds) and hasattr(judge, "relevant_from")
    }
    if not found or (wanted and wanted not in found):
        known = ", ".join(found) or "none"
        asked = wanted or "context_precision"
        raise ConfigError(f"judge agree: no judge '{asked}' that grades passages; there is {known}")
    label = wanted or next(iter(found))
    return label, found[label]


def _tell(
    judging: Judging, asking: LlmJudge, tasks: Sequence[Task], models: Models, tell: Callable[[str], None]
) -> None:
    cost = estimate(judging.archive, asking, missing(judging.archive, asking, tasks), models.price)
    tell(cost.told(f"{asking.name()} ({asking.model})"))


def _swapped(judging: Judging, label: str, questions: set[str]) -> list[Task]:
    pool = next(pool for pool in judging.pools if pool.name == label)
    return [task._replace(take=SWAPPED) for task in pool.tasks if task.query in questions and task.take == 0]


def _known(caller: Caller, asking: LlmJudge, tasks: Sequence[Task]) -> dict[Task, Judgment]:
    return {t: j for t, j in stored(caller.archive, asking, tasks).items() if isinstance(j, Label | Failure)}


def _grade(asking: Judge, case: Case, known: Mapping[Task, Judgment]) -> int | None:
    """The judge's grade of a case's one passage, the first where it was asked repeatedly; None where that failed."""
    judgment = asking.score(case, known).findings[0].judgments[0]
    return None if isinstance(judgment, Failure) else judgment.grade


def _swap_flips(caller: Caller, asking: LlmJudge, swapped: Sequence[Task], line: int) -> Estimate | None:
    if not swapped:
        return None
    there = _known(caller, asking, swapped)
    plain = _known(caller, asking, [task._replace(take=0) for task in swapped])
    pairs = [(there[task], plain[task._replace(take=0)]) for task in swapped]
    sides = [(a.grade >= line, b.grade >= line) for a, b in pairs if isinstance(a, Label) and isinstance(b, Label)]
    return wilson(sum(a != b for a, b in sides), len(sides))


def _pools(session: Session) -> dict[str, dict[str, None]]:
    """The passages that any trial selected for each query, as deep as the judges look."""
    pools: dict[str, dict[str, None]] = {}
    depth = _depth(session.experiment)
    for trial in session.trials:
        for case in session.pipeline(trial).cases(trial):
            texts = (passage.text for passage in case.passages[:depth])
            pools.setdefault(case.query.id, {}).update(dict.fromkeys(texts))
    return pools


def _corrected(
    session: Session, judging: Judging, label: str, asking: LlmJudge, rows: Sequence[Row], line: int
) -> tuple[str, list[Corrected], list[str]]:
    """Each trial's mean over the sheet's queries as people would have it, and what has to be said about that."""
    by_query: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_query.setdefault(row.query, {})[row.passage] = row
    whole = {query: found for query, found in by_query.items() if all(row.grade is not None for row in found.values())}
    notes = []
    if len(whole) < len(by_query):
        told = f"{len(by_query) - len(whole)} queries with passages not graded are left out of the corrected means"
        notes.append(f"{told}; were they skipped for being hard, the rest is no fair sample")
    graded = sum(map(len, whole.values()))
    enough = graded >= FEWEST and len(whole) >= 2
    if not enough:
        notes.append(f"no corrected means: {graded} grades of wholly graded queries, at least {FEWEST} are needed")
    strange = _strangers(_pools(session), whole)
    if strange:
        enough = False
        notes.append(f"no corrected means: {strange}; draw a new sheet with `harness judge sample`")
    parts = [_trial_parts(session, judging, trial, label, asking, whole, line) for trial in session.trials]
    at = find_baseline([trial.params() for trial in session.trials], session.experiment.compare.baseline)
    corrected = []
    for name, part in zip(session.names, parts, strict=True):
        gap = part - parts[at]
        own = name == session.names[at]
        corrected.append(
            Corrected(
                name,
                _whole_mean(part),
                _estimate(part, 0.0) if enough else None,
                _whole_mean(gap),
                None if own or not enough else _estimate(gap, -1.0),
            )
        )
    return session.names[at], corrected, notes


def _strangers(pools: Mapping[str, Mapping[str, None]], whole: Mapping[str, Mapping[str, Row]]) -> str:
    """Why a sheet's passages say nothing fair about these trials; empty where they do."""
    for query, rows in whole.items():
        row = next(iter(rows.values()))
        if digest(sorted(pools.get(query, {})))[:16] != row.pool_digest:
            return f"for query '{query}' the trials select other passages than those the sheet was drawn from"
        if not rows.keys() <= pools[query].keys() or len(rows) != row.drawn:
            return f"the passages of query '{query}' are not those that were drawn"
    return ""


def _trial_parts(
    session: Session,
    judging: Judging,
    trial: Trial,
    label: str,
    asking: LlmJudge,
    whole: Mapping[str, Mapping[str, Row]],
    line: int,
) -> Floats:
    """(3, queries): the share of relevant passages by people from those graded, by the judge from those and from all.

    The judge's two are NaN where a judgment is missing.
    """
    made = []
    pipeline = session.pipeline(trial)
    for case, verdicts in zip(pipeline.cases(trial), judging.verdicts(trial), strict=True):
        if case.query.id in whole:
            judged = [finding.judgments[0] for finding in verdicts[label].findings]
            known = not any(isinstance(judgment, Failure) for judgment in judged)
            relevant = [isinstance(judgment, Label) and judgment.grade >= line for judgment in judged]
            people, judge, everywhere = _query_parts(
                case, relevant, whole[case.query.id], getattr(asking, "k", None), line
            )
            made.append((people, judge, everywhere) if known else (people, np.nan, np.nan))
    return np.array(made, np.float64).reshape(-1, 3).T


def _query_parts(
    case: Case, relevant: Sequence[bool], rows: Mapping[str, Row], k: int | None, line: int
) -> tuple[float, float, float]:
    passages = case.passages[:k]
    of = k or len(passages)
    if not passages:
        return 0.0, 0.0, 0.0
    people = judge = 0.0
    for passage, says in zip(passages, relevant, strict=True):
        row = rows.get(passage.text)
        if row:
            weight = row.pool / row.drawn / of
            people += weight * ((row.grade or 0) >= line)
            judge += weight * says
    return people, judge, sum(relevant) / of


def _whole_mean(part: Floats) -> float | None:
    return None if not part.size or np.isnan(part[2]).any() else float(part[2].mean())


def _estimate(part: Floats, least: float) -> Estimate:
    """The mean as people would have it. Where the judge is silent on a query, people's grades stand alone there."""
    people, judge, everywhere = part[0], *np.nan_to_num(part[1:])
    found = ppi_by_query(people, judge, everywhere)
    # A share, or a difference of two, lies in a range that a weighted sum may leave.
    return Estimate(*(float(np.clip(value, least, 1.0)) for value in found))
