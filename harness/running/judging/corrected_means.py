"""Corrected means of a judge: prediction-powered inference from the grades of a sheet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from harness.components.roles import Judge
from harness.core.records import Case, Floats
from harness.evaluation.stats.rater_agreement import ppi_by_query
from harness.evaluation.stats.rates import Estimate
from harness.experiment.params import find_baseline
from harness.experiment.trial import Trial
from harness.llm.answers import Failure, Label
from harness.running.judging.agreement import Corrected
from harness.running.judging.grading_sample import passage_pools
from harness.running.judging.grading_sheet import Row
from harness.running.judging.judging import Judging
from harness.running.session import Session
from harness.storage.digest import digest

FEWEST = 50
"""The minimum number of grades for corrected means."""


@dataclass(frozen=True)
class GradedSheet:
    """The rows of a sheet, some with grades, and the judge to correct; a grade of at least `line` is relevant."""

    judging: Judging
    label: str
    rows: Sequence[Row]
    line: int

    @property
    def judge(self) -> Judge:
        """The judge with the label."""
        return self.judging.pool.judges[self.label]

    @cached_property
    def by_query(self) -> dict[str, dict[str, Row]]:
        """The rows by query and passage."""
        found: dict[str, dict[str, Row]] = {}
        for row in self.rows:
            found.setdefault(row.query, {})[row.passage] = row
        return found

    @cached_property
    def whole(self) -> dict[str, dict[str, Row]]:
        """The rows of the queries whose passages all have a grade."""
        return {
            query: rows for query, rows in self.by_query.items() if all(row.grade is not None for row in rows.values())
        }


def corrected_means(session: Session, sheet: GradedSheet) -> tuple[str, list[Corrected], list[str]]:
    """Return the baseline's name, each trial's means over the fully graded queries, and notes on the correction."""
    whole, by_query = sheet.whole, sheet.by_query
    notes = []
    if len(whole) < len(by_query):
        message = f"{len(by_query) - len(whole)} queries with passages not graded are left out of the corrected means"
        notes.append(f"{message}; if they were skipped because they are hard, the others are not a fair sample")
    graded = sum(map(len, whole.values()))
    enough = graded >= FEWEST and len(whole) >= 2
    if not enough:
        notes.append(f"no corrected means: {graded} grades of fully graded queries, at least {FEWEST} are needed")
    mismatch = _mismatch(passage_pools(session), whole)
    if mismatch:
        enough = False
        notes.append(f"no corrected means: {mismatch}; draw a new sheet with `harness judge sample`")
    parts = [_trial_parts(session, trial, sheet) for trial in session.trials]
    at = find_baseline([trial.params() for trial in session.trials], session.experiment.compare.baseline)
    corrected = []
    for name, part in zip(session.names, parts, strict=True):
        gap = part - parts[at]
        is_baseline = name == session.names[at]
        corrected.append(
            Corrected(
                name,
                _whole_mean(part),
                _estimate(part, 0.0) if enough else None,
                _whole_mean(gap),
                None if is_baseline or not enough else _estimate(gap, -1.0),
            )
        )
    return session.names[at], corrected, notes


def _mismatch(pools: Mapping[str, Mapping[str, None]], whole: Mapping[str, Mapping[str, Row]]) -> str:
    """Why a sheet's passages are not a random sample from these trials' pools; empty if they are."""
    for query, rows in whole.items():
        row = next(iter(rows.values()))
        if digest(sorted(pools.get(query, {})))[:16] != row.pool_digest:
            return f"for query '{query}' the trials select other passages than those the sheet was drawn from"
        if not rows.keys() <= pools[query].keys() or len(rows) != row.drawn:
            return f"the passages of query '{query}' are not those that were drawn"
    return ""


def _trial_parts(session: Session, trial: Trial, sheet: GradedSheet) -> Floats:
    """Estimates of each query's fraction of relevant passages, (3, queries).

    The rows are: by people from the graded passages, by the judge from the same passages, by the judge from all. The
    judge's are NaN if a judgment is missing.
    """
    made = []
    cases, verdicts = session.outputs(trial).cases(), sheet.judging.verdicts(trial)
    for case, verdict in zip(cases, verdicts, strict=True):
        if case.query.id in sheet.whole:
            judged = [finding.judgments[0] for finding in verdict[sheet.label].findings]
            known = not any(isinstance(judgment, Failure) for judgment in judged)
            relevant = [isinstance(judgment, Label) and judgment.grade >= sheet.line for judgment in judged]
            parts = _query_parts(case, relevant, sheet.whole[case.query.id], sheet.judge.k, sheet.line)
            made.append(parts if known else (parts[0], np.nan, np.nan))
    return np.array(made, np.float64).reshape(-1, 3).T


def _query_parts(
    case: Case, relevant: Sequence[bool], rows: Mapping[str, Row], k: int | None, line: int
) -> tuple[float, float, float]:
    passages = case.passages[:k]
    of = k or len(passages)
    if not passages:
        return 0.0, 0.0, 0.0
    people = judge = 0.0
    for passage, judged in zip(passages, relevant, strict=True):
        row = rows.get(passage.text)
        if row:
            weight = row.pool / row.drawn / of
            people += weight * ((row.grade or 0) >= line)
            judge += weight * judged
    return people, judge, sum(relevant) / of


def _whole_mean(part: Floats) -> float | None:
    return None if not part.size or np.isnan(part[2]).any() else float(part[2].mean())


def _estimate(part: Floats, lowest: float) -> Estimate:
    """The corrected mean. A query without all judgments uses people's grades only."""
    people, judge, everywhere = part[0], *np.nan_to_num(part[1:])
    found = ppi_by_query(people, judge, everywhere)
    # A weighted sum can leave the range of a fraction, or of a difference of two.
    return Estimate(*(float(np.clip(value, lowest, 1.0)) for value in found))
