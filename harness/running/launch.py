"""A launch: expand the grid, make what is not stored yet, and log the results."""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict, Unpack

from harness.core.errors import ConfigError
from harness.core.secrecy import api_key
from harness.evaluation.results import TrialResult, gathered
from harness.experiment.experiment import Experiment
from harness.experiment.params import find_baseline
from harness.experiment.trial import Trial
from harness.llm import Caller
from harness.llm.transport import KEY
from harness.running.engines import open_engine
from harness.running.exchange import sending
from harness.running.execution import Execution, with_reach
from harness.running.finalists import finalists
from harness.running.judging.judge_summary import JudgingReport
from harness.running.judging.judging import Judging
from harness.running.launch_history import record_launch
from harness.running.launch_result import Launch
from harness.running.live import Live, started
from harness.running.locked_set import open_locked_set, test_set_accesses
from harness.running.models import Models, answers_of
from harness.running.score_bins import score_bins
from harness.running.session import Session, store_folder
from harness.running.stages.judge import AskJudges
from harness.running.stages.model_access import ModelAccess
from harness.running.stages.stage import Stage
from harness.running.task import counted
from harness.storage.paces import Paces
from harness.tracking import Destinations, FinishedLaunch, FinishedTrial, ReportOutput, open_tracker

Report = Callable[[Launch], ReportOutput]
"""Returns the files to log with a launch, and the tags for each of its trials."""


class LaunchOptions(TypedDict, total=False):
    """The options of everything that runs an experiment. None changes a number."""

    workers: int
    """The number of tasks that run at a time (default: 1)."""
    on: str | None
    """Where tasks run: `processes`, `dask://HOST:PORT`, `dask://local`, or `package.module:callable`, which returns a
    `concurrent.futures.Executor` (default: HARNESS_ON, else `processes`)."""
    store: Path | str | None
    """The store: a folder, or the URL of a bucket (default: HARNESS_STORE, else `.harness` in the project)."""
    tracking: Destinations
    """Where to log: a destination or several, none if empty; see `harness.tracking.open_tracker`."""
    models: Models | None
    """Limits what language models may cost."""
    notify: Callable[[str], None]
    """Receives a line with the expected cost before the first call."""


class RunOptions(LaunchOptions, total=False):
    """The options of `run`. None but `final` changes a number."""

    log: bool
    """Whether to log (default: true)."""
    final: bool
    """Score the baseline and the trial chosen on validation on the locked query set, and record the access."""
    choose: Mapping[str, object] | None
    """With `final`: choose the first trial that matches these params, instead of the best on validation."""
    report: Report | None
    """Makes the files and trial tags that are logged with the launch (default: `launch_report`); None for none."""


@dataclass(frozen=True)
class _Options:
    """The options with their defaults; see `RunOptions`."""

    workers: int = 1
    on: str | None = None
    store: Path | str | None = None
    tracking: Destinations = None
    models: Models | None = None
    notify: Callable[[str], None] = lambda _: None
    log: bool = True
    final: bool = False
    choose: Mapping[str, object] | None = None
    report: Report | None = None

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ConfigError(f"workers: expected at least 1, got {self.workers}")

    @property
    def logs(self) -> bool:
        """Whether anything is logged."""
        return self.log and self.tracking not in ([], ())


def run(experiment: Experiment, **given: Unpack[RunOptions]) -> Launch:
    """Compute every trial of an experiment, log it and return the launch; see `RunOptions`.

    If a run is killed, the next one resumes where it stopped. Raises HarnessError for every problem that the user can
    fix.
    """
    options, begin = _Options(**given), time.time()
    session = _open(experiment, options)
    with sending(session.store):
        return _run(session, options, begin)


def _run(session: Session, options: _Options, begin: float) -> Launch:
    """Compute, log and record a launch."""
    experiment = session.experiment
    launch_id = time.strftime("%Y%m%d-%H%M%S-", time.gmtime(begin)) + secrets.token_hex(2)
    open_locked_set(session, launch_id)
    models = _open_models(session, options)
    tracker = (
        open_tracker(experiment.name, options.tracking, session.store, experiment.base_dir) if options.logs else None
    )
    with open_engine(options.workers, options.on) as engine:
        if engine.link:
            options.notify(f"engine: {engine.link}")
        session.send_to(engine)
        judging = Judging(session, models.caller.answers, price=session.price) if session.trials[0].judges else None
        goals = [_goal(session, trial, judging) for trial in session.trials]
        execution = Execution(session.graph_to(goals), engine, models, session.corpus_bytes)
        state = started(launch_id, experiment.name, begin, len(session.trials))
        results = []
        with Live(session.store, state, models.caller, tracker, lambda: len(execution.lost)) as live:
            for trial, result in _results(session, execution, goals, judging):
                results.append(result)
                if tracker:
                    tracker.log_trial(_logged(session, trial, result, judging), launch_id)
                live.trial_finished()
            execution.finish()
    models.paces.save()
    launch = _made(session, launch_id, results, execution, models.caller, judging)
    launch = replace(launch, seconds=time.time() - begin)
    if tracker:
        launch = replace(launch, score_bins=score_bins(session))
        finished = _finished(launch, begin, models.caller, options.report)
        finished = finished._replace(traced=_traced(session, finished, judging), traces=experiment.traces)
        launch = replace(launch, logged=tracker.log_launch(finished))
    record_launch(session, launch)
    return launch


def _open(experiment: Experiment, options: _Options) -> Session:
    """The session of a launch, with all packages that it needs."""
    store, price = store_folder(options.store, experiment.base_dir), options.models.price if options.models else None
    if options.final and experiment.partial:
        raise ConfigError("--final: the locked query set is for the whole experiment; leave out --filter and --limit")
    if options.final:
        experiment = finalists(experiment, store=store, choose=options.choose)
    session = Session(experiment, store, final=options.final, price=price)
    session.require_packages()
    return session


def _open_models(session: Session, options: _Options) -> ModelAccess:
    """The caller of a launch, with its answers examined and prices for all models that it needs."""
    models = options.models or Models()
    caller = models.caller(answers_of(session), options.notify)
    caller.answers.examine()
    _require_prices(session, caller)
    return ModelAccess(caller, models.price, options.notify, Paces(session.store))


def _require_prices(session: Session, caller: Caller) -> None:
    """Check prices and the API key before any work: with a budget, every model needs a price."""
    for trial in session.trials:
        for part in (trial.chunker, trial.augmenter, *trial.selector, *trial.judges):
            if part.prompter:
                api_key(KEY)  # raises now if the key cannot be sent
                caller.account.require_price(part.prompter)


def _goal(session: Session, trial: Trial, judging: Judging | None) -> Stage:
    """The stage that a trial's result needs: its scores, or their judgments."""
    scores = session.outputs(trial).stages.scores
    return AskJudges(scores, judging) if judging else scores


def _results(
    session: Session, execution: Execution, goals: Sequence[Stage], judging: Judging | None
) -> Iterator[tuple[Trial, TrialResult]]:
    """Yield the trials with their results, in grid order, each as soon as it is scored.

    Raises the first failure of a stage, after everything that does not need it is made and stored.
    """
    for trial, name, goal in zip(session.trials, session.names, goals, strict=True):
        failure = execution.until(goal.address)
        if failure:
            execution.finish()
            lost = [name for name, one in zip(session.names, goals, strict=True) if one.address in execution.lost]
            raise with_reach(failure, lost, len(goals))
        # Damage to an artifact is found when it is read; rebuilding it counts as work too.
        with counted(session.outputs(trial).work) as repaired:
            result = session.result(trial, name)
        execution.work.add(repaired)
        yield trial, judging.judged(trial, result) if judging else result


def _logged(session: Session, trial: Trial, result: TrialResult, judging: Judging | None) -> FinishedTrial:
    """The trial as it is logged."""
    return FinishedTrial(
        result,
        (*trial.metrics, *result.judged),
        session.manifest,
        lambda: judging.rows(trial) if judging else session.outputs(trial).rows(),
        trial.to_json(),
        session.experiment.source,
        session.final,
    )


def _made(
    session: Session,
    launch_id: str,
    results: Sequence[TrialResult],
    execution: Execution,
    caller: Caller,
    judging: Judging | None,
) -> Launch:
    """The launch with its results, the work it took, and warnings."""
    work = execution.work.built | ({"ask": caller.spend.calls} if judging and caller.spend.calls else {})
    return Launch(
        launch_id,
        session.experiment,
        results,
        work,
        warnings=[*session.notes(results), *gathered(results), *_repairs(execution, caller)],
        judging_report=JudgingReport(judging.outcome() if judging else (), caller.spend),
        session=session,
        judging=judging,
    )


def _finished(launch: Launch, begin: float, caller: Caller, report: Report | None) -> FinishedLaunch:
    """The launch as it is logged, with the files and tags of the report."""
    assert launch.session is not None
    return FinishedLaunch(
        launch.id,
        launch.results,
        launch.metrics,
        begin,
        launch.session.final,
        launch.session.synthetic,
        len(test_set_accesses(launch.session)),
        launch.work,
        caller.spend.figures(),
        report(launch) if report else ReportOutput(),
        launch.experiment.tags,
        launch.experiment.notes,
        launch.experiment.partial,
    )


def _traced(session: Session, finished: FinishedLaunch, judging: Judging | None) -> list[FinishedTrial]:
    """The best trial and the baseline, as they are logged."""
    by_name = {result.name: (trial, result) for trial, result in zip(session.trials, finished.results, strict=True)}
    baseline = find_baseline([trial.params() for trial in session.trials], session.experiment.compare.baseline)
    wanted = dict.fromkeys((finished.top.name, finished.results[baseline].name))
    return [_logged(session, *by_name[name], judging) for name in wanted]


def _repairs(execution: Execution, caller: Caller) -> Iterator[str]:
    """Warnings about damaged files of the store."""
    damaged, answers = execution.work.damaged, caller.answers
    if damaged:
        yield f"{len(damaged)} damaged files of the store were set aside and rebuilt: {', '.join(damaged[:3])}"
    if answers.damaged:
        message = "answers.sqlite was damaged and set aside"
        yield f"{message}; {answers.saved} stored answers were recovered, the others were requested again"
    if answers.damaged_rows:
        yield f"{answers.damaged_rows} damaged rows of answers.sqlite were dropped"
