"""A launch: expand the grid, do what is not yet stored, in phases, and log it."""

import contextlib
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from harness.component import Embedder, identity
from harness.dataset import Manifest, find_dataset, read_manifest
from harness.dataset.load import Copies, verify
from harness.errors import ConfigError, HarnessError, did_you_mean
from harness.executors import open_executor
from harness.experiment import Compare, Experiment, Trial, find_baseline, names
from harness.launch import Launch
from harness.pipeline import Pipeline
from harness.progress import progress
from harness.results import TrialResult
from harness.store import canonical, digest, explained, locked
from harness.tracking import FinishedTrial, Tracker


class PlannedTrial(NamedTuple):
    name: str
    stored: Mapping[str, bool]


@dataclass(frozen=True)
class Plan:
    """What a launch would do: stages stored per trial, and the distinct texts to embed with their tokens and price.

    `texts`, `tokens` and `usd` are keyed by embedder; a price is None where the embedder names none.
    """

    trials: Sequence[PlannedTrial]
    texts: Mapping[str, int]
    tokens: Mapping[str, int]
    usd: Mapping[str, float | None]
    judge_calls: int = 0


def default_store() -> Path:
    """The folder HARNESS_STORE names, else `.harness` in the working folder."""
    return Path(os.environ.get("HARNESS_STORE", ".harness"))


class Session:
    """The trials of an experiment with the pipelines that can work them out."""

    def __init__(self, experiment: Experiment, store: Path, *, final: bool = False) -> None:
        self.experiment, self.store, self.final = experiment, store.resolve(), final
        trials = experiment.trials()
        root = find_dataset(experiment.base.data, experiment.beside)
        self.manifest = read_manifest(root)
        if final:
            trials = [replace(trial, queries=_locked(self.manifest)) for trial in trials]
        self.trials, self.names = trials, names(trials)
        # A comparison that cannot be made must be told before the work, not after.
        find_baseline([trial.params() for trial in trials], experiment.compare.baseline)
        # The pinned files are hashed once a launch; from here on their hashes stand for their content.
        verify(self.manifest.corpus)
        for queries in dict.fromkeys(trial.queries for trial in trials):
            pinned = self.manifest.query_set(queries)
            if pinned.locked and not final:
                self.pipeline(trials[0]).data  # noqa: B018 - raises the explanation
            verify(pinned)

    def pipeline(self, trial: Trial) -> Pipeline:
        return _pipeline(self.place(trial))

    def place(self, trial: Trial) -> "Place":
        return Place(
            str(self.manifest.root),
            self.manifest.corpus.sha256,
            trial.queries,
            self.manifest.query_set(trial.queries).sha256,
            trial.tokenizer,
            trial.copies,
            str(self.store),
            self.final,
        )

    def results(self) -> list[TrialResult]:
        """The results of all trials, worked out where they are not stored."""
        return [self.pipeline(trial).result(trial, name) for trial, name in zip(self.trials, self.names, strict=True)]


class Place(NamedTuple):
    """What a worker needs besides the trial to find its pipeline; all text, so that it crosses any process boundary.

    The hashes are there to tell a data set from what it was before an edit, in a process that outlives the edit.
    """

    root: str
    corpus_sha256: str
    queries: str
    queries_sha256: str
    tokenizer: str
    copies: Copies
    store: str
    final: bool


class Work(NamedTuple):
    """What a task had to do: artifacts built by stage, and damaged files it found."""

    built: dict[str, int]
    damaged: list[str]


_local = threading.local()


def _pipeline(place: Place) -> Pipeline:
    """This thread's pipeline for a place: tasks that share a corpus share what it has read, threads share nothing."""
    known: dict[Place, Pipeline] = _local.__dict__.setdefault("pipelines", {})
    if place not in known:
        known[place] = Pipeline(
            read_manifest(Path(place.root)),
            place.queries,
            Path(place.store),
            tokenizer=place.tokenizer,
            copies=place.copies,
            final=place.final,
        )
    return known[place]


def _chunk(trial_json: str, place: Place) -> Work:
    """Worker task: the chunked, augmented corpus of a trial."""
    trial, pipeline = Trial.from_json(trial_json), _pipeline(place)
    with _counted(pipeline) as work:
        pipeline.passages(trial)
    return work


def _score(trial_json: str, place: Place) -> Work:
    """Worker task: retrieval, selection and scores of a trial."""
    trial, pipeline = Trial.from_json(trial_json), _pipeline(place)
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


def _locked(manifest: Manifest) -> str:
    locked = [name for name, pinned in manifest.queries.items() if pinned.locked]
    if len(locked) != 1:
        told = f"{len(locked)} locked query sets ({', '.join(locked) or 'none'})"
        raise ConfigError(f"--final: {manifest.root} has {told}; it takes one")
    return locked[0]


def plan(experiment: Experiment, *, store: Path | None = None) -> Plan:
    """What `run` would do. Chunks the corpus where that is not stored, to count texts; asks nothing of the network."""
    session = Session(experiment, store or default_store())
    planned = [
        PlannedTrial(name, session.pipeline(trial).stored(trial))
        for trial, name in zip(session.trials, session.names, strict=True)
    ]
    texts: dict[str, int] = {}
    tokens: dict[str, int] = {}
    usd: dict[str, float | None] = {}
    for label, (embedder, pipeline, documents, queries) in _to_embed(session).items():
        count = pipeline.tokens
        texts[label] = len(documents) + len(queries)
        tokens[label] = sum(map(count, documents)) + sum(map(count, queries))
        price = getattr(embedder, "usd_per_million_tokens", None)
        usd[label] = tokens[label] * price / 1e6 if price is not None else (None if embedder.metered else 0.0)
    return Plan(planned, texts, tokens, usd)


class ToEmbed(NamedTuple):
    """The distinct texts an embedder has not seen, of chunks and of queries."""

    embedder: Embedder
    pipeline: Pipeline
    documents: list[str]
    queries: list[str]


def _to_embed(session: Session) -> dict[str, ToEmbed]:
    """Per embedder, the texts that the unfinished trials need and the cache lacks."""
    wanted: dict[str, tuple[Embedder, Pipeline, dict[str, None]]] = {}
    for trial in session.trials:
        pipeline = session.pipeline(trial)
        if trial.uses_vectors and not pipeline.stored(trial)["retrieve"]:
            key = digest(identity(trial.embedder))
            _, _, texts = wanted.setdefault(key, (trial.embedder, pipeline, {}))
            texts.update(dict.fromkeys(pipeline.passages(trial).texts))
    found: dict[str, ToEmbed] = {}
    for embedder, pipeline, texts in wanted.values():
        documents = pipeline.missing(embedder, list(texts))
        queries = pipeline.missing(embedder, pipeline.query_texts, queries=True)
        label = " ".join([embedder.name(), str(getattr(embedder, "model", ""))]).strip()
        found[label if label not in found else f"{label} {len(found)}"] = ToEmbed(
            embedder, pipeline, documents, queries
        )
    return found


def run(
    experiment: Experiment,
    *,
    workers: int = 1,
    on: str = "processes",
    store: Path | None = None,
    tracking: str | None = None,
    log: bool = True,
    final: bool = False,
    report: Callable[[Launch], Mapping[str, bytes]] | None = None,
) -> Launch:
    """Work out every trial of an experiment and log it to MLflow.

    `workers` tasks run at a time, `on` processes or an executor of the user's; neither changes a result. `tracking` is
    an MLflow tracking URI (default: MLFLOW_TRACKING_URI, else `mlflow.db` in the working folder); with `log=False`
    nothing is logged. `final` scores the locked query set instead, which is recorded. `report` makes the files that
    are kept beside the launch in MLflow (`reports.launch_report`). Killed at any moment, the next run goes on where
    this one stopped. Raises HarnessError for whatever the user can mend.
    """
    begin = time.time()
    if workers < 1:
        raise ConfigError(f"workers: expected at least 1, got {workers}")
    session = Session(experiment, store or default_store(), final=final)
    launch_id = time.strftime("%Y%m%d-%H%M%S-", time.gmtime(begin)) + secrets.token_hex(2)
    openings = _opened(session, launch_id)
    work: dict[str, int] = {}
    damaged: list[str] = []
    results: list[TrialResult] = []
    with contextlib.ExitStack() as stack:
        executor = stack.enter_context(open_executor(workers, on))
        tracker = Tracker(experiment.name, tracking, session.store) if log else None
        _prepare(session, executor, work, damaged)
        tasks = _submitted(session, executor)
        advance = stack.enter_context(progress("retrieve and score", len(session.trials)))
        for at, (trial, name) in enumerate(zip(session.trials, session.names, strict=True)):
            if at in tasks:
                _add(tasks[at], work, damaged)
            # A damaged artifact is only found when it is read: making it again is work as well.
            with _counted(session.pipeline(trial)) as mended:
                results.append(_logged(session, trial, name, launch_id, tracker))
            _merge(mended, work, damaged)
            advance(1)
        warnings = _gathered(results)
        if damaged:
            warnings.append(
                f"{len(damaged)} damaged files of the store were set aside and made again: {', '.join(damaged[:3])}"
            )
        launch = Launch(launch_id, experiment, results, work, time.time() - begin, warnings)
        if tracker:
            links = tracker.log_launch(
                launch_id,
                results,
                metrics=_headline(experiment),
                begun=begin,
                final=final,
                openings=openings,
                work=work,
                report=report(launch) if report else {},
            )
            launch = replace(launch, links=links)
    _record(session, launch)
    return launch


def _prepare(session: Session, executor: Executor, work: dict[str, int], damaged: list[str]) -> None:
    """Chunk what the trials need, each chunking once, then embed all their texts in this process.

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
    for embedder, pipeline, documents, queries in _to_embed(session).values():
        with _counted(pipeline) as done, progress("embed", len(documents) + len(queries)) as advance:
            pipeline.embed(embedder, documents, progress=advance)
            pipeline.embed(embedder, queries, queries=True, progress=advance)
            pipeline.query_latency(embedder)
        _merge(done, work, damaged)


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


def _logged(session: Session, trial: Trial, name: str, launch_id: str, tracker: Tracker | None) -> TrialResult:
    pipeline = session.pipeline(trial)
    result = pipeline.result(trial, name)
    if tracker:
        finished = FinishedTrial(
            result,
            trial.metrics,
            session.manifest,
            lambda: pipeline.rows(trial),
            trial.to_json(),
            session.experiment.source,
            session.final,
        )
        tracker.log_trial(finished, launch_id)
    return result


def _gathered(results: Sequence[TrialResult]) -> list[str]:
    """Each distinct warning once, with the trials it concerns."""
    concerned: dict[str, list[str]] = {}
    for result in results:
        for warning in result.warnings:
            concerned.setdefault(warning, []).append(result.name)
    return [f"{warning} ({', '.join(trials)})" for warning, trials in concerned.items()]


def _opened(session: Session, launch_id: str) -> int:
    """How often the locked query set has been opened from this store, this launch included where it is final.

    The opening is written down before the first score is seen, whatever becomes of the launch.
    """
    queries = session.manifest.query_set(session.trials[0].queries)
    record = session.store / "openings" / f"{queries.sha256}.txt"
    with explained(session.store), locked(session.store / "openings" / "lock"):
        if session.final:
            with record.open("a", encoding="utf-8") as file:
                file.write(f"{launch_id} {session.experiment.name}\n")
        return len(record.read_text(encoding="utf-8").splitlines()) if record.is_file() else 0


def _headline(experiment: Experiment) -> list[str]:
    """The metrics asked for, that of the comparison first."""
    return sorted(experiment.metrics, key=lambda metric: metric != experiment.compare.on)


def _record(session: Session, launch: Launch) -> None:
    """Leave the launch's trials in the store, so that `compare NAME` finds them."""
    record = {
        "id": launch.id,
        "experiment": launch.experiment.name,
        "final": session.final,
        "beside": str(launch.experiment.beside),
        "data": str(session.manifest.root),
        "question": launch.experiment.question,
        "compare": {"baseline": dict(launch.experiment.compare.baseline), "on": launch.experiment.compare.on},
        "trials": [json.loads(trial.to_json()) for trial in session.trials],
    }
    with explained(session.store):
        folder = session.store / "launches"
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".{launch.id}"
        draft.write_text(canonical(record), encoding="utf-8")
        draft.rename(folder / f"{launch.id}.json")


def stored_launch(experiment: Experiment | str, *, store: Path | None = None) -> Launch:
    """A launch read back from the store: of an experiment all of whose trials are stored, or the newest of a name.

    Raises ConfigError where trials are missing or no launch of that name is known.
    """
    place = store or default_store()
    launch_id, final = "", False
    if isinstance(experiment, str):
        launch_id, experiment, final = _recorded(experiment, place)
    session = Session(experiment, place, final=final)
    missing = sum(not session.pipeline(trial).stored(trial)["score"] for trial in session.trials)
    if missing:
        told = f"{missing} of {len(session.trials)} trials of '{experiment.name}'"
        raise ConfigError(f"compare: {told} have not run; `harness run` does that")
    return Launch(launch_id, experiment, session.results())


def _recorded(name: str, store: Path) -> tuple[str, Experiment, bool]:
    """The newest launch of an experiment: its id, its trials as an experiment, and whether it opened the locked set."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((store / "launches").glob("*.json"))]
    found = [record for record in records if record["experiment"] == name]
    if not found:
        known = sorted({record["experiment"] for record in records})
        told = f"{did_you_mean(name, known)} Known: {', '.join(known)}" if known else " None has run here"
        raise ConfigError(f"compare: no launch of an experiment '{name}' in {store}.{told}")
    record = found[-1]
    trials = tuple(Trial.from_json(canonical({**trial, "data": record["data"]})) for trial in record["trials"])
    compare = Compare(record["compare"]["baseline"], record["compare"]["on"])
    beside = Path(record["beside"])
    made = Experiment(name, trials[0], question=record["question"], compare=compare, beside=beside, fixed=trials)
    return record["id"], made, record["final"]
