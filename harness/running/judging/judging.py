"""Judge a launch: pool the tasks of all trials, request each judgment once, and compute the scores of each trial."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from harness.components.component import step_labels
from harness.components.embedders import Local
from harness.components.roles import Judge, judge_measures
from harness.components.verdict import Verdict
from harness.core.blame import blamed, understood
from harness.core.errors import ConfigError
from harness.core.records import Case, Chunk, Query, Span, Vectors
from harness.evaluation.results import Judged, TrialResult
from harness.evaluation.stats import Variance, variance_of_repeats
from harness.experiment.trial import Trial
from harness.llm import (
    SWAPPED,
    AnswerCache,
    BatchRunner,
    Caller,
    Completion,
    Estimate,
    Failure,
    Judgment,
    Label,
    Prompter,
    Task,
    all_missing,
    estimate,
    stored,
)
from harness.running.judging.agreement_store import stored_agreement
from harness.running.judging.checked_verdict import checked_verdict
from harness.running.judging.claims import Claims, given
from harness.running.judging.judge_summary import JudgeSummary, JudgingReport
from harness.running.judging.judge_tasks import JudgeTasks
from harness.running.judging.verdict_json import column, flips, judgments_json, verdict_json
from harness.running.models import answers_of
from harness.running.session import Session
from harness.storage.digest import digest


class Judging:
    """The judges of an experiment, applied to all its trials, whose selections must be stored.

    Raises ConfigError if a judge needs answers or evidence text that the queries do not have.
    """

    def __init__(self, session: Session, answers: AnswerCache, *, price: tuple[float, float] | None = None) -> None:
        self._session, self.answers, self._price = session, answers, price
        judges = session.trials[0].judges
        self._judges = dict(zip(step_labels(judges), judges, strict=True))
        self.claims = Claims(session, answers, judges, price)
        self._texts: dict[str, str] = {}
        for judge in judges:
            self._refuse_unjudgeable(judge)

    def _refuse_unjudgeable(self, judge: Judge) -> None:
        queries = self._session.outputs(self._session.trials[0]).queries
        message = f"judges: {judge.name()}: "
        items = judge.of
        answered = any(query.answer or query.metadata.get("claims") for query in queries)
        spans = any(query.evidence and not query.by_document for query in queries)
        if items == "evidence" and any(query.by_document for query in queries):
            other = "; set `of: answer`" if answered and judge.prompter else ""
            raise ConfigError(f"{message}document-level evidence has no text to look for; use recall@k{other}")
        if items == "answer" and not answered:
            raise ConfigError(f"{message}no query has an answer{'; set `of: evidence`' if spans else ''}")

    @cached_property
    def judge_tasks(self) -> list[JudgeTasks]:
        """The distinct tasks of each judge over all trials. Missing claims must have been requested before."""
        judge_tasks = [JudgeTasks(name, judge) for name, judge in self._judges.items()]
        for trial in self._session.trials:
            for pool, cases in self._per_judge(trial, judge_tasks):
                tasks: dict[Task, None] = {}
                for case in cases:
                    asked = pool.judge.tasks(case)
                    with understood(f"judge {pool.name}: query '{case.query.id}': tasks", "a list of Tasks"):
                        tasks.update(dict.fromkeys(self._shared(task) for task in asked))
                    pool.empty += not case.passages
                pool.naive += len(pool.prompter.batches(list(tasks))) if pool.prompter else 0
                pool.tasks.update(tasks)
        for pool in judge_tasks:
            if pool.prompter and pool.judge.repeats > 1 and pool.tasks and not any(task.take for task in pool.tasks):
                raise ConfigError(f"judge {pool.name}: repeats: its tasks have no `take`; leave repeats out")
        return judge_tasks

    @property
    def _wanted(self) -> list[tuple[Prompter, list[Task]]]:
        return [(pool.prompter, list(pool.tasks)) for pool in self.judge_tasks if pool.prompter]

    def _per_judge(self, trial: Trial, judge_tasks: Sequence[JudgeTasks]) -> Iterator[tuple[JudgeTasks, list[Case]]]:
        cases = list(self._session.outputs(trial).cases())
        for pool in judge_tasks:
            prompter = pool.judge.claims()
            yield pool, self.claims.put_into(cases, prompter) if prompter else cases

    def _shared(self, task: Task) -> Task:
        """The task with its texts shared in memory among all trials that select them."""
        return task._replace(texts=tuple(self._texts.setdefault(text, text) for text in task.texts))

    def summaries(self) -> list[JudgeSummary]:
        """Return a summary for each judge with its calls and their expected cost, before asking."""
        made = []
        lefts = iter(all_missing(self.answers, self._wanted))
        for pool in self.judge_tasks:
            prompter = pool.prompter
            if prompter is None:
                made.append(JudgeSummary(pool.name, "", judgments=len(pool.tasks), empty=pool.empty))
                continue
            left = next(lefts)
            cost = estimate(self.answers, prompter, left, self._price)
            pooled = len(prompter.batches(list(pool.tasks)))
            made.append(
                JudgeSummary(
                    pool.name, prompter.model, pool.naive, pooled, cost.calls, len(pool.tasks), cost, empty=pool.empty
                )
            )
        return made

    def bound(self) -> dict[str, Estimate]:
        """Return an upper bound on the cost of each language-model judge, by label, before anything is retrieved.

        It assumes that nothing is stored or pooled, and that every query selects the longest passages of the corpus,
        as many as the retriever and the selector allow.
        """
        bounds: dict[str, Estimate] = {}
        for trial in self._session.trials:
            outputs = self._session.outputs(trial)
            limits = [step.k for step in trial.selector if isinstance(step.k, int)]
            longest = outputs.longest_chunks(min([trial.retriever.depth, *limits]))
            for label, judge in self._judges.items():
                if judge.prompter is None:
                    continue
                tasks = [task for query in outputs.queries for task in judge.tasks(_unfound(query, longest))]
                cost = estimate(self.answers, judge.prompter, tasks, self._price)
                bounds[label] = bounds.get(label, Estimate()).plus(cost)
        return bounds

    def run(self, caller: Caller, notify: Callable[[str], None]) -> list[JudgeSummary]:
        """Report the cost of the judgments that are not stored, request them, and return a summary for each judge.

        Raises JudgeError if no further call to a server can succeed; answers received until then are kept.
        """
        listing = self.claims.estimate()
        if listing.calls:
            notify(listing.summary("claims of reference answers"))
            self.claims.ask(caller)
        summaries = self.summaries()
        for summary in summaries:
            if summary.model:
                notify(summary.cost)
        expected = sum(summary.estimate.usd or 0.0 for summary in summaries)
        if caller.budget is not None and expected > caller.budget:
            notify(f"--budget {caller.budget:g} is less than the ${expected:.4f} expected: judgments will be missing")
        BatchRunner(caller).ask(self._wanted, "judge")
        return self.outcome(summaries)

    def outcome(self, summaries: Sequence[JudgeSummary]) -> list[JudgeSummary]:
        """Return the summaries completed with the outcome: costs, failures, models, flips and calibration."""
        made = []
        for summary, pool in zip(summaries, self.judge_tasks, strict=True):
            judgments = self._judgments[pool.name]
            failed: dict[str, int] = {}
            for judgment in judgments.values():
                if isinstance(judgment, Failure):
                    failed[judgment.kind] = failed.get(judgment.kind, 0) + 1
            example = next((str(one.detail) for one in judgments.values() if isinstance(one, Failure)), "")
            flagged = sum(isinstance(j, Label) and "suspicious" in j.flags for j in judgments.values())
            prompter = pool.prompter
            addresses = prompter.addresses(list(pool.tasks)) if prompter else []
            paid, unpriced = self.answers.paid(addresses)
            made.append(
                replace(
                    summary,
                    paid=paid,
                    unpriced=unpriced,
                    failures=failed,
                    example=example,
                    models=self.answers.served(addresses),
                    flips=self.flips(pool.name),
                    suspicious=flagged,
                    calibration=stored_agreement(pool.judge, self._session.store, self._session.data)
                    if prompter
                    else "",
                )
            )
        return made

    def _calibration(self, pool: JudgeTasks) -> str:
        """The agreement of a judge with people, as text; empty if it asks no language model."""
        return stored_agreement(pool.judge, self._session.store, self._session.data) if pool.prompter else ""

    def flips(self, label: str) -> float | None:
        """Return the fraction of a judge's repeated judgments that disagree; None without repeats."""
        return flips(self._judges[label], self._judgments[label])

    def variance(self, trial: Trial) -> dict[str, Variance]:
        """Return the variance components of each judge's first measure on a trial, for judges with repeats.

        They are computed over the queries that have a value in every repeat. The effect of passage order is included if
        at least two of them have also been judged in reverse order (`judge agree --swap` does that for a sample).
        """
        found = {}
        for pool, cases in self._per_judge(trial, self.judge_tasks):
            prompter, judge = pool.prompter, pool.judge
            if prompter is None or judge.repeats < 2:
                continue
            once = cast(Judge, replace(cast(Any, judge), repeats=1))
            takes = [self._as_only_take(pool, take) for take in range(judge.repeats)]
            values = np.array([[_primary(once.score(case, known)) for known in takes] for case in cases])
            complete = ~np.isnan(values).any(axis=1)
            if complete.sum() < 2:
                continue
            tasks = [task._replace(take=SWAPPED) for task in pool.tasks if not task.take]
            reverse = stored(self.answers, prompter, tasks)
            other = {task._replace(take=0): one for task, one in reverse.items() if not isinstance(one, Completion)}
            swapped = np.array([_primary(once.score(case, {**takes[0], **other})) for case in cases])
            both = complete & ~np.isnan(swapped)
            found[pool.name] = (
                variance_of_repeats(values[both], swapped[both])
                if both.sum() >= 2
                else variance_of_repeats(values[complete])
            )
        return found

    def _as_only_take(self, pool: JudgeTasks, take: int) -> dict[Task, Judgment]:
        """The judgments of one repeat, as if it were the only one."""
        return {task._replace(take=0): one for task, one in self._judgments[pool.name].items() if task.take == take}

    @cached_property
    def _judgments(self) -> dict[str, dict[Task, Judgment]]:
        """A judgment for every task, by judge."""
        made: dict[str, dict[Task, Judgment]] = {}
        for pool in self.judge_tasks:
            if pool.prompter:
                known = stored(self.answers, pool.prompter, list(pool.tasks))
                listing = pool.judge.claims()
                if listing:
                    # If claims could not be extracted, the failure takes their place.
                    known |= stored(self.answers, listing, self.claims.tasks()[0][1])
                made[pool.name] = {t: found for t, found in known.items() if not isinstance(found, Completion)}
            else:
                tasks = list(pool.tasks)
                with blamed(f"judge {pool.name}: {len(tasks)} judgments", tasks):
                    made[pool.name] = dict(pool.judge.decide(tasks, self.embed))
                missing = next((task for task in tasks if task not in made[pool.name]), None)
                if missing is not None and type(pool.judge).decide is not Judge.decide:
                    raise ConfigError(f"judge {pool.name}: decide returned no judgment for query {missing.query!r:.60}")
        return made

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors of texts, (texts, dimensions), for judges that call no language model."""
        vectors = self._session.outputs(self._session.trials[0]).work.vectors.embed(Local(), texts).vectors
        norms = np.linalg.norm(vectors, axis=1, keepdims=True) if len(vectors) else np.ones((0, 1), np.float32)
        return np.asarray(vectors / np.maximum(norms, 1e-12), np.float32)

    def verdicts(self, trial: Trial) -> list[dict[str, Verdict]]:
        """Return the verdicts on each query of a trial, by judge. Raises ConfigError if one is invalid."""
        rows: list[dict[str, Verdict]] = [{} for _ in self._session.outputs(trial).queries]
        for pool, cases in self._per_judge(trial, self.judge_tasks):
            known = self._judgments[pool.name]
            for row, case in zip(rows, cases, strict=True):
                where = f"judge {pool.name}: query '{case.query.id}'"
                with blamed(where):
                    verdict = pool.judge.score(case, known)
                with understood(where, "a Verdict with a Score for each measure, and findings"):
                    row[pool.name] = checked_verdict(where, pool.judge, verdict)
        return rows

    def judged(self, trial: Trial, result: TrialResult) -> TrialResult:
        """Return the result with the judges' measures added; its fingerprint then covers every judgment."""
        rows = self.verdicts(trial)
        measures: dict[str, Judged] = {}
        for name, (label, judge, measure) in judge_measures(trial.judges).items():
            scores = [row[label].scores[measure] for row in rows]
            values, low, high = (column(scores, side) for side in ("value", "low", "high"))
            measures[name] = Judged(label, values, low, high, judge.max_failed)
        lines = [[verdict_json(verdict) for verdict in row.values()] for row in rows]
        fingerprint = digest({"trial": result.fingerprint, "judges": trial.identity()["judges"], "verdicts": lines})
        return replace(result, judged=measures, fingerprint=fingerprint)

    def rows(self, trial: Trial) -> Iterator[dict[str, Any]]:
        """Yield one record per query of a trial, with judgments; those of passages are stored with the passages."""
        for row, judged in zip(self._session.outputs(trial).rows(), self.verdicts(trial), strict=True):
            for name, (label, _, measure) in judge_measures(trial.judges).items():
                score = judged[label].scores[measure]
                row["scores"][name] = None if score is None else score.value
            for label, verdict in judged.items():
                for finding in verdict.findings:
                    if finding.rank is not None:
                        row["kept"][finding.rank - 1].setdefault("judged", {})[label] = judgments_json(finding)
            row["judges"] = {label: verdict_json(verdict) for label, verdict in judged.items()}
            yield row


def _primary(verdict: Verdict) -> float:
    """The value of a judge's first measure; NaN if there is none."""
    score = next(iter(verdict.scores.values()))
    return float("nan") if score is None or score.value is None else score.value


def results_of(session: Session) -> "tuple[list[TrialResult], JudgingReport, Judging | None]":
    """Return the results of all trials, computed if they are not stored; judgments only as far as they are stored.

    Also returns the report on judging, and the judging itself if there are judges.
    """
    named = zip(session.trials, session.names, strict=True)
    results = [session.result(trial, name) for trial, name in named]
    if not session.trials[0].judges:
        return results, JudgingReport(), None
    judging = Judging(session, answers_of(session))
    judged = [judging.judged(trial, result) for trial, result in zip(session.trials, results, strict=True)]
    return judged, JudgingReport(judging.outcome(judging.summaries())), judging


def _unfound(query: Query, passages: Sequence[Chunk]) -> Case:
    """A case whose evidence is in none of the passages, so that a judge needs a call for every item."""
    items = tuple(f"{number}: {query.text}" for number, _ in enumerate(query.evidence, 1))
    nowhere = tuple(replace(item, places=(Span("\0", 0, 1),)) for item in query.evidence)
    claims = given(Case(query, (), ())) or tuple((query.answer or "").split(". "))
    return Case(replace(query, evidence=nowhere), items, tuple(passages), claims)
