"""A launch: expand the grid, compute in phases what is not stored yet, and log the results."""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.core.errors import ConfigError
from harness.core.progress import progress
from harness.core.secrecy import api_key
from harness.evaluation.results import TrialResult, gathered
from harness.experiment.experiment import Experiment
from harness.experiment.trial import Trial
from harness.llm import Caller, Prompter
from harness.llm.transport import KEY
from harness.running import tasks
from harness.running.executors import open_executor
from harness.running.finalists import finalists
from harness.running.judging.judge_summary import JudgingReport
from harness.running.judging.judging import Judging
from harness.running.launch_history import record_launch
from harness.running.launch_result import Findings, Launch
from harness.running.locked_set import open_locked_set, test_set_accesses
from harness.running.models import Models, answers_of
from harness.running.prefetch import charge_embedding, cut_and_write, rerank
from harness.running.primary_metric import primary_metric
from harness.running.score_bins import score_bins
from harness.running.session import Session, store_folder
from harness.running.tasks import Work, counted
from harness.running.trial_result import PriceGiven
from harness.tracking import FinishedLaunch, FinishedTrial, Tracker

Report = Callable[[Launch], Findings]
"""Returns the files to log with a launch, and the tags for each of its trials."""


def run(
    experiment: Experiment,
    *,
    workers: int = 1,
    on: str = "processes",
    store: Path | str | None = None,
    tracking: str | None = None,
    log: bool = True,
    final: bool = False,
    choose: Mapping[str, object] | None = None,
    report: Report | None = None,
    models: Models | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> Launch:
    """Compute every trial of an experiment, log it to MLflow and return the launch.

    `workers` tasks run at a time, `on` worker processes or a custom executor; neither changes a result. `tracking` is
    an MLflow tracking URI (default: MLFLOW_TRACKING_URI, else `mlflow.db` in the working folder); with `log=False`
    nothing is logged. `final` scores the baseline and the trial chosen on validation (or the first that matches the
    params in `choose`) on the locked query set, and records the access. `report` makes the files and trial tags that
    are logged with the launch (`reports.launch_report`). `models` limits what language models may cost; `notify`
    receives a line with the expected cost before the first call. If a run is killed, the next one resumes where it
    stopped. Raises HarnessError for every problem that the user can fix.
    """
    begin = time.time()
    if workers < 1:
        raise ConfigError(f"workers: expected at least 1, got {workers}")
    if final:
        experiment = finalists(experiment, store=store, choose=choose)
    models = models or Models()
    session = Session(experiment, store_folder(store), final=final, price=models.price)
    session.require_packages()
    launch_id = time.strftime("%Y%m%d-%H%M%S-", time.gmtime(begin)) + secrets.token_hex(2)
    open_locked_set(session, launch_id)
    caller = models.caller(answers_of(session), notify)
    caller.answers.examine()
    _require_prices(session, caller)
    with open_executor(workers, on) as executor:
        tracker = Tracker(experiment.name, tracking, session.store) if log else None
        phases = _Phases(session, executor, caller, models.price, notify, launch_id, tracker)
        phases.chunk_and_embed()
        phases.select()
        launch = phases.score()
        launch = replace(launch, seconds=time.time() - begin)
        if tracker:
            launch = replace(launch, score_bins=score_bins(session))
            finished = _finished(launch, begin, caller, report)
            launch = replace(launch, links=tracker.log_launch(finished))
    record_launch(session, launch)
    return launch


def _require_prices(session: Session, caller: Caller) -> None:
    """Check prices and the API key before any work: with a budget, every model needs a price."""
    for trial in session.trials:
        for part in (trial.chunker, trial.augmenter, *trial.selector, *trial.judges):
            if isinstance(part, Prompter):
                api_key(KEY)  # raises now if the key cannot be sent
                caller.require_price(part)


@dataclass
class _Phases:
    """The phases of one launch, in the order of its methods."""

    session: Session
    executor: Executor
    caller: Caller
    price: PriceGiven
    notify: Callable[[str], None]
    launch_id: str
    tracker: Tracker | None
    work: Work = field(default_factory=lambda: Work({}, []))

    def chunk_and_embed(self) -> None:
        """Compute each distinct chunking once, then embed all texts in this process.

        A single process embeds with all threads; several would each load the model and compete for the same cores.
        """
        session = self.session
        with self.work.counting(session, session.trials):
            cut_and_write(session, self.caller, self.price, self.notify)
        needed = {}
        for trial in session.trials:
            pipeline = session.pipeline(trial)
            if not pipeline.stored(trial)["retrieve"]:
                needed[pipeline.passages_address(trial)] = trial
        self._wait_for("chunk", [self._submit(tasks.chunk, trial) for trial in needed.values()])
        for embedder, pipeline, documents, queries in session.to_embed().values():
            with counted(pipeline) as done, pipeline.vectors.alone(embedder):
                # Another launch may have embedded some of them while this one waited for the lock.
                documents = pipeline.vectors.missing(embedder, documents)
                queries = pipeline.vectors.missing(embedder, queries, queries=True)
                charge_embedding(pipeline, embedder, [*documents, *queries], caller=self.caller, notify=self.notify)
                with progress("embed", len(documents) + len(queries)) as advance:
                    pipeline.vectors.fill(embedder, documents, progress=advance)
                    pipeline.vectors.fill(embedder, queries, queries=True, progress=advance)
                pipeline.query_latency(embedder)
            self.work.add(done)

    def select(self) -> None:
        """Compute the selections that need models, in this process, so that each model is loaded once."""
        session = self.session
        waiting = [trial for trial in session.trials if session.pipeline(trial).needs_selection_calls(trial)]
        if not waiting:
            return
        self._wait_for("retrieve", [self._submit(tasks.retrieve, trial) for trial in waiting])
        with self.work.counting(session, waiting):
            rerank(session, self.caller, self.price, self.notify)

    def score(self) -> Launch:
        """Score all trials, then judge them: the tasks to judge are known only when every selection is known."""
        session = self.session
        judged = bool(session.trials[0].judges)
        results = self._results(judged)
        report, judging = JudgingReport(spend=self.caller.spend), None
        if judged:
            judging = Judging(session, self.caller.answers, price=self.price)
            report = JudgingReport(judging.run(self.caller, self.notify), self.caller.spend)
            if self.caller.spend.calls:
                self.work.built["ask"] = self.caller.spend.calls
            results = [self._logged(*named, judging) for named in zip(session.trials, session.names, strict=True)]
        warnings = [*session.notes(results), *gathered(results)]
        damaged = self.work.damaged
        if damaged:
            warnings.append(
                f"{len(damaged)} damaged files of the store were set aside and rebuilt: {', '.join(damaged[:3])}"
            )
        warnings += _lost_answers(self.caller)
        return Launch(
            self.launch_id,
            session.experiment,
            results,
            self.work.built,
            warnings=warnings,
            judging_report=report,
            session=session,
            judging=judging,
        )

    def _results(self, judged: bool) -> list[TrialResult]:
        """The results of all trials, logged as they finish. Empty if `judged`: they are logged after judging."""
        session, results = self.session, []
        submitted = {
            at: self._submit(tasks.score, trial)
            for at, trial in enumerate(session.trials)
            if not session.pipeline(trial).stored(trial)["score"]
        }
        with progress("retrieve and score", len(session.trials)) as advance:
            for at, (trial, name) in enumerate(zip(session.trials, session.names, strict=True)):
                if at in submitted:
                    self.work.add_task(submitted[at])
                # Damage to an artifact is found when it is read; rebuilding it counts as work too.
                with counted(session.pipeline(trial)) as repaired:
                    if judged:
                        session.pipeline(trial).scores(trial)
                    else:
                        results.append(self._logged(trial, name))
                self.work.add(repaired)
                advance(1)
        return results

    def _submit(self, task: Callable[..., Work], trial: Trial) -> "Future[Work]":
        return self.executor.submit(task, trial.to_json(), self.session.place(trial))

    def _wait_for(self, title: str, submitted: "Sequence[Future[Work]]") -> None:
        with progress(title, len(submitted)) as advance:
            for task in submitted:
                self.work.add_task(task)
                advance(1)

    def _logged(self, trial: Trial, name: str, judging: Judging | None = None) -> TrialResult:
        session, pipeline = self.session, self.session.pipeline(trial)
        result = session.result(trial, name)
        if judging:
            result = judging.judged(trial, result)
        if self.tracker:
            finished = FinishedTrial(
                result,
                (*trial.metrics, *result.judged),
                session.manifest,
                lambda: judging.rows(trial) if judging else pipeline.rows(trial),
                trial.to_json(),
                session.experiment.source,
                session.final,
            )
            self.tracker.log_trial(finished, self.launch_id)
        return result


def _finished(launch: Launch, begin: float, caller: Caller, report: Report | None) -> FinishedLaunch:
    """The launch as it is logged, with the files and tags of the report."""
    assert launch.session is not None
    found = report(launch) if report else Findings({}, {})
    return FinishedLaunch(
        launch.id,
        launch.results,
        _primary(launch.experiment, launch.results),
        begin,
        launch.session.final,
        launch.session.synthetic,
        len(test_set_accesses(launch.session)),
        launch.work,
        caller.spend.figures(),
        *found,
    )


def _lost_answers(caller: Caller) -> list[str]:
    answers, warnings = caller.answers, []
    if answers.damaged:
        message = "answers.sqlite was damaged and set aside"
        warnings.append(f"{message}; {answers.saved} stored answers were recovered, the others were requested again")
    if answers.damaged_rows:
        warnings.append(f"{answers.damaged_rows} damaged rows of answers.sqlite were dropped")
    return warnings


def _primary(experiment: Experiment, results: Sequence[TrialResult]) -> list[str]:
    """The requested metrics and the judges' measures, the primary metric first."""
    return list(dict.fromkeys((primary_metric(experiment, results), *experiment.metrics, *experiment.judged)))
