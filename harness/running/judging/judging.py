"""Judge a launch: request each judgment once for all trials, and compute the scores of each trial."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from harness.components.embedders import Local
from harness.components.roles import Judge, judge_measures
from harness.components.verdict import Verdict
from harness.core.blame import blamed, understood
from harness.core.errors import ConfigError
from harness.core.plurals import plural
from harness.core.records import Vectors
from harness.evaluation.results import Judged, TrialResult
from harness.experiment.trial import Trial
from harness.llm import AnswerCache, BatchRunner, Completion, Failure, Judgment, Label, Task, stored
from harness.llm.answers import UNASKED, FailureKind
from harness.running.judging.agreement_store import stored_agreement
from harness.running.judging.checked_verdict import checked_verdict
from harness.running.judging.claims import Claims
from harness.running.judging.judge_costs import expected_judging
from harness.running.judging.judge_summary import JudgeSummary, JudgingReport
from harness.running.judging.judge_tasks import JudgeTasks, TaskPool
from harness.running.judging.verdict_json import column, flips, judgments_json, verdict_json
from harness.running.models import answers_of
from harness.running.session import Session
from harness.running.stages.model_access import ModelAccess, PriceGiven
from harness.storage.digest import digest

_KEPT = 100_000
"""Max verdicts kept in memory, so that each is worked out once for results, records and report."""

Verdicts = list[dict[str, Verdict]]
"""The verdicts on each query of a trial, by judge."""


class Judging:
    """The judges of an experiment, applied to all its trials, whose selections must be stored.

    Raises ConfigError if a judge needs answers or evidence text that the queries do not have.
    """

    def __init__(self, session: Session, answers: AnswerCache, *, price: PriceGiven = None) -> None:
        self._session, self.answers = session, answers
        self.pool = TaskPool(session, answers, price)
        self.expected: list[JudgeSummary] = []
        """A summary for each judge, with its expected cost; empty before `ask`."""
        self._verdicts: OrderedDict[int, tuple[Trial, Verdicts]] = OrderedDict()

    @property
    def claims(self) -> Claims:
        """The claims of reference answers."""
        return self.pool.claims

    def ask(self, models: ModelAccess) -> None:
        """Report the cost of the judgments that are not stored, and request them.

        Raises JudgeError if no further call to a server can succeed; answers received until then are kept.
        """
        caller, cap = models.caller, models.caller.account.cap
        listing = self.claims.estimate()
        if listing.calls:
            models.notify(listing.summary("claims of reference answers"))
            self.claims.ask(caller)
        self.expected = expected_judging(self.pool)
        for summary in self.expected:
            if summary.model:
                models.notify(summary.cost)
        usd = sum(summary.estimate.usd or 0.0 for summary in self.expected)
        if cap is not None and usd > cap:
            message = f"--budget {cap:g} is less than the ${usd:.4f} expected"
            models.notify(f"{message}: judgments will be missing")
        BatchRunner(caller).ask(self.pool.wanted, "judge")

    def outcome(self) -> list[JudgeSummary]:
        """Return a summary for each judge: calls, costs, failures, models, flips and agreement with people."""
        expected = self.expected or expected_judging(self.pool)
        return [self._outcome(summary, pool) for summary, pool in zip(expected, self.pool.by_judge, strict=True)]

    def _outcome(self, summary: JudgeSummary, pool: JudgeTasks) -> JudgeSummary:
        judgments = self.judgments[pool.name].values()
        failures = [judgment for judgment in judgments if isinstance(judgment, Failure)]
        failed: dict[FailureKind, int] = {}
        for failure in failures:
            failed[failure.kind] = failed.get(failure.kind, 0) + 1
        prompter = pool.prompter
        addresses = prompter.addresses(list(pool.tasks)) if prompter else []
        paid, unpriced = self.answers.paid(addresses)
        agreement = stored_agreement(pool.judge, self._session.store, self._session.data) if prompter else ""
        return replace(
            summary,
            paid=paid,
            unpriced=unpriced,
            failures=failed,
            example=next((one.detail for one in sorted(failures, key=lambda one: one.kind in UNASKED)), ""),
            models=self.answers.served(addresses),
            flips=self.flips(pool.name),
            suspicious=sum(isinstance(one, Label) and "suspicious" in one.flags for one in judgments),
            calibration=agreement,
        )

    def flips(self, label: str) -> float | None:
        """Return the fraction of a judge's repeated judgments that disagree; None without repeats."""
        return flips(self.pool.judges[label], self.judgments[label])

    @cached_property
    def judgments(self) -> dict[str, dict[Task, Judgment]]:
        """A judgment for every task, by judge."""
        return {pool.name: self._asked(pool) if pool.prompter else self._decided(pool) for pool in self.pool.by_judge}

    def _asked(self, pool: JudgeTasks) -> dict[Task, Judgment]:
        """The stored judgments of a language model; a failure for each that is missing."""
        assert pool.prompter is not None
        known = stored(self.answers, pool.prompter, list(pool.tasks))
        listing = pool.judge.claims()
        if listing:
            # If claims could not be extracted, the failure takes their place.
            known |= stored(self.answers, listing, self.claims.tasks()[0][1])
        return {task: found for task, found in known.items() if not isinstance(found, Completion)}

    def _decided(self, pool: JudgeTasks) -> dict[Task, Judgment]:
        """The judgments of a judge that asks no language model."""
        tasks = list(pool.tasks)
        with blamed(pool.judge, f"judge {pool.name}: {plural(len(tasks), 'judgment')}", tasks):
            made = dict(pool.judge.decide(tasks, self.embed))
        missing = next((task for task in tasks if task not in made), None)
        if missing is not None and type(pool.judge).decide is not Judge.decide:
            raise ConfigError(f"judge {pool.name}: decide returned no judgment for query {missing.query!r:.60}")
        return made

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors of texts, (texts, dimensions), for judges that call no language model."""
        vectors = self._session.outputs(self._session.trials[0]).work.vectors.embed(Local(), texts).vectors
        norms = np.linalg.norm(vectors, axis=1, keepdims=True) if len(vectors) else np.ones((0, 1), np.float32)
        return np.asarray(vectors / np.maximum(norms, 1e-12), np.float32)

    def verdicts(self, trial: Trial) -> Verdicts:
        """Return the verdicts on each query of a trial, by judge. Raises ConfigError if one is invalid."""
        if id(trial) not in self._verdicts:
            self._verdicts[id(trial)] = trial, self._judge(trial)
            while len(self._verdicts) > 1 and sum(len(rows) for _, rows in self._verdicts.values()) > _KEPT:
                self._verdicts.popitem(last=False)
        return self._verdicts[id(trial)][1]

    def _judge(self, trial: Trial) -> Verdicts:
        rows: Verdicts = [{} for _ in self._session.outputs(trial).queries]
        for pool, cases in self.pool.cases(trial):
            known = self.judgments[pool.name]
            for row, case in zip(rows, cases, strict=True):
                where = f"judge {pool.name}: query '{case.query.id}'"
                with blamed(pool.judge, where):
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


def results_of(session: Session) -> tuple[list[TrialResult], JudgingReport, Judging | None]:
    """Return the results of all trials, computed if they are not stored; judgments only as far as they are stored.

    Also returns the report on judging, and the judging itself if there are judges.
    """
    named = zip(session.trials, session.names, strict=True)
    results = [session.result(trial, name) for trial, name in named]
    if not session.trials[0].judges:
        return results, JudgingReport(), None
    judging = Judging(session, answers_of(session))
    judged = [judging.judged(trial, result) for trial, result in zip(session.trials, results, strict=True)]
    return judged, JudgingReport(judging.outcome()), judging
