"""A launch: expand the grid, do what is not yet stored, in phases, and log it."""

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from harness.components.roles import Embedder
from harness.core.errors import ConfigError, HarnessError
from harness.core.progress import progress
from harness.core.secrecy import api_key
from harness.evaluation.results import TrialResult, gathered
from harness.experiment.experiment import Experiment
from harness.experiment.trial import Trial
from harness.llm import Asking, Caller
from harness.llm.transport import KEY
from harness.run.executors import open_executor
from harness.run.final_test import finalists
from harness.run.judging.judge_summary import JudgingReport
from harness.run.judging.judging import Judging
from harness.run.launch_history import record_launch
from harness.run.launch_result import Findings, Launch
from harness.run.models import Models, archive_of
from harness.run.pipeline import Pipeline
from harness.run.prefetch import charge_embedding, cut_and_write, rerank
from harness.run.primary_metric import headline_metric
from harness.run.score_bands import score_bands
from harness.run.session import Place, Session, pipeline_of, store_folder
from harness.run.test_set_access import open_locked_set, openings
from harness.tracking import FinishedLaunch, FinishedTrial, Tracker


class Work(NamedTuple):
    """What a task had to do: artifacts built by stage, and damaged files it found."""

    built: dict[str, int]
    damaged: list[str]


def _chunk(trial_json: str, place: Place) -> Work:
    """Worker task: the chunked, augmented corpus of a trial."""
    trial, pipeline = Trial.from_json(trial_json), pipeline_of(place)
    with _counted(pipeline) as work:
        pipeline.passages(trial)
    return work


def _retrieve(trial_json: str, place: Place) -> Work:
    """Worker task: the rankings of a trial."""
    trial, pipeline = Trial.from_json(trial_json), pipeline_of(place)
    with _counted(pipeline) as work:
        pipeline.rankings(trial)
    return work


def _score(trial_json: str, place: Place) -> Work:
    """Worker task: retrieval, selection and scores of a trial."""
    trial, pipeline = Trial.from_json(trial_json), pipeline_of(place)
    with _counted(pipeline) as work:
        pipeline.scores(trial)
    return work


@contextlib.contextmanager
def _counted(pipeline: Pipeline) -> Iterator[Work]:
    """What a pipeline builds inside the block."""
    work = Work({}, [])
    before, damaged, files = dict(pipeline.store.built), len(pipeline.store.damaged), pipeline.vectors.damaged
    yield work
    for stage, count in pipeline.store.built.items():
        if count > before.get(stage, 0):
            work.built[stage] = count - before.get(stage, 0)
    work.damaged.extend(pipeline.store.damaged[damaged:])
    work.damaged.extend(["vectors.sqlite"] * (pipeline.vectors.damaged - files))


@contextlib.contextmanager
def _counting(session: Session, trials: Sequence[Trial], work: dict[str, int], damaged: list[str]) -> Iterator[None]:
    """Add what the pipelines of some trials do inside the block."""
    pipelines = {id(pipeline): pipeline for pipeline in map(session.pipeline, trials)}
    with contextlib.ExitStack() as stack:
        counted = [stack.enter_context(_counted(pipeline)) for pipeline in pipelines.values()]
        yield
    for done in counted:
        _merge(done, work, damaged)


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
    report: Callable[[Launch], Findings] | None = None,
    models: Models | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Launch:
    """Work out every trial of an experiment and log it to MLflow.

    `workers` tasks run at a time, `on` processes or an executor of the user's; neither changes a result. `tracking` is
    an MLflow tracking URI (default: MLFLOW_TRACKING_URI, else `mlflow.db` in the working folder); with `log=False`
    nothing is logged. `final` scores the trial that validation chose (or the first with the params of `choose`) and the
    baseline on the locked query set, which is recorded. `report` makes the files that are kept beside the launch in
    MLflow, and what is said of its trials there (`reports.launch_report`). `models` says what may be spent on language
    models; `tell` is given a line on what asking them will cost before the first call. Killed at any moment, the next
    run goes on where this one stopped. Raises HarnessError for whatever the user can mend.
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
    work: dict[str, int] = {}
    damaged: list[str] = []
    results: list[TrialResult] = []
    caller = models.caller(archive_of(session), tell)
    caller.archive.examine()
    _require_prices(session, caller)
    judging_report = JudgingReport(spend=caller.spend)
    with contextlib.ExitStack() as stack:
        executor = stack.enter_context(open_executor(workers, on))
        tracker = Tracker(experiment.name, tracking, session.store) if log else None
        with _counting(session, session.trials, work, damaged):
            cut_and_write(session, caller, models.price, tell)
        _prepare(session, executor, work, damaged, partial(charge_embedding, caller=caller, tell=tell))
        _select(session, executor, work, damaged, lambda: rerank(session, caller, models.price, tell))
        tasks = _submitted(session, executor)
        judged, judging = bool(session.trials[0].judges), None
        with progress("retrieve and score", len(session.trials)) as advance:
            for at, (trial, name) in enumerate(zip(session.trials, session.names, strict=True)):
                if at in tasks:
                    _add(tasks[at], work, damaged)
                # A damaged artifact is only found when it is read: making it again is work as well.
                with _counted(session.pipeline(trial)) as mended:
                    if judged:
                        session.pipeline(trial).scores(trial)
                    else:
                        results.append(_logged(session, trial, name, launch_id, tracker))
                _merge(mended, work, damaged)
                advance(1)
        if judged:
            # Only now is it known what all trials together need judged.
            judging = Judging(session, caller.archive, price=models.price)
            judging_report = JudgingReport(judging.run(caller, tell), caller.spend)
            if caller.spend.calls:
                work["ask"] = caller.spend.calls
            for trial, name in zip(session.trials, session.names, strict=True):
                results.append(_logged(session, trial, name, launch_id, tracker, judging))
        warnings = [*session.notes(results), *gathered(results)]
        if damaged:
            warnings.append(
                f"{len(damaged)} damaged files of the store were set aside and made again: {', '.join(damaged[:3])}"
            )
        warnings += _lost_answers(caller)
        launch = Launch(
            launch_id,
            experiment,
            results,
            work,
            time.time() - begin,
            warnings,
            judging=judging_report,
            session=session,
            courtroom=judging,
        )
        if tracker:
            launch = replace(launch, bands=score_bands(session))
            found = report(launch) if report else Findings({}, {})
            spend = caller.spend.figures()
            finished = FinishedLaunch(
                launch_id,
                results,
                _headline(experiment, results),
                begin,
                final,
                session.synthetic,
                len(openings(session)),
                work,
                spend,
                *found,
            )
            launch = replace(launch, links=tracker.log_launch(finished))
    record_launch(session, launch)
    return launch


def _require_prices(session: Session, caller: Caller) -> None:
    """Refuse a budget on models without a price now, not after the retrieval."""
    for trial in session.trials:
        for part in (trial.chunker, trial.augmenter, *trial.selector, *trial.judges):
            if isinstance(part, Asking):
                api_key(KEY)  # one that cannot be sent is better found now
                caller.require_price(part)


def _prepare(
    session: Session,
    executor: Executor,
    work: dict[str, int],
    damaged: list[str],
    charge: Callable[[Pipeline, Embedder, Sequence[str]], None],
) -> None:
    """Chunk what the trials need, each chunking once, then embed all their texts in this process, accounted for first.

    One process embeds with all threads: several would each load the model and share the same cores.
    """
    needed = {}
    for trial in session.trials:
        pipeline = session.pipeline(trial)
        if not pipeline.stored(trial)["retrieve"]:
            needed[pipeline.passages_address(trial)] = trial
    chunked = [executor.submit(_chunk, trial.to_json(), session.place(trial)) for trial in needed.values()]
    with progress("chunk", len(chunked)) as advance:
        for task in chunked:
            _add(task, work, damaged)
            advance(1)
    for embedder, pipeline, documents, queries in session.to_embed().values():
        with _counted(pipeline) as done, pipeline.vectors.alone(embedder):
            # Another launch may have embedded some while this one waited.
            documents = pipeline.vectors.missing(embedder, documents)
            queries = pipeline.vectors.missing(embedder, queries, queries=True)
            charge(pipeline, embedder, [*documents, *queries])
            with progress("embed", len(documents) + len(queries)) as advance:
                pipeline.vectors.fill(embedder, documents, progress=advance)
                pipeline.vectors.fill(embedder, queries, queries=True, progress=advance)
            pipeline.query_latency(embedder)
        _merge(done, work, damaged)


def _select(
    session: Session, executor: Executor, work: dict[str, int], damaged: list[str], rerank: Callable[[], None]
) -> None:
    """The selections that need models, made in this process, which holds each model once; retrieval goes before it."""
    waiting = [trial for trial in session.trials if session.pipeline(trial).unselected(trial)]
    retrieved = [executor.submit(_retrieve, trial.to_json(), session.place(trial)) for trial in waiting]
    if not waiting:
        return
    with progress("retrieve", len(retrieved)) as advance:
        for task in retrieved:
            _add(task, work, damaged)
            advance(1)
    with _counting(session, waiting, work, damaged):
        rerank()


def _submitted(session: Session, executor: Executor) -> dict[int, "Future[Work]"]:
    """A task for every trial whose scores are not stored, by the trial's number."""
    return {
        at: executor.submit(_score, trial.to_json(), session.place(trial))
        for at, trial in enumerate(session.trials)
        if not session.pipeline(trial).stored(trial)["score"]
    }


def _add(task: "Future[Work]", work: dict[str, int], damaged: list[str]) -> None:
    try:
        _merge(task.result(), work, damaged)
    except BrokenExecutor as error:
        raise HarnessError(
            "a worker process died (killed, or out of memory); run again to go on, with fewer --workers"
        ) from error


def _merge(done: Work, work: dict[str, int], damaged: list[str]) -> None:
    for stage, count in done.built.items():
        work[stage] = work.get(stage, 0) + count
    damaged.extend(done.damaged)


def _logged(
    session: Session,
    trial: Trial,
    name: str,
    launch_id: str,
    tracker: Tracker | None,
    judging: Judging | None = None,
) -> TrialResult:
    pipeline = session.pipeline(trial)
    result = session.result(trial, name)
    if judging:
        result = judging.judged(trial, result)
    if tracker:
        finished = FinishedTrial(
            result,
            (*trial.metrics, *result.judged),
            session.manifest,
            lambda: judging.rows(trial) if judging else pipeline.rows(trial),
            trial.to_json(),
            session.experiment.source,
            session.final,
        )
        tracker.log_trial(finished, launch_id)
    return result


def _lost_answers(caller: Caller) -> list[str]:
    archive, warnings = caller.archive, []
    if archive.damaged:
        told = "answers.sqlite was damaged and set aside"
        warnings.append(f"{told}; {archive.saved} stored answers were saved, others had to be asked again")
    if archive.damaged_rows:
        warnings.append(f"{archive.damaged_rows} rows of answers.sqlite were damaged, and dropped")
    return warnings


def _headline(experiment: Experiment, results: Sequence[TrialResult]) -> list[str]:
    """The metrics asked for and the judges' measures, that of the comparison first."""
    return list(dict.fromkeys((headline_metric(experiment, results), *experiment.metrics, *experiment.judged)))
