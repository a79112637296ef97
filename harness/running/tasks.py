"""Tasks of a launch. Workers receive a trial as JSON and a StageContext, never pickled components."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from typing import NamedTuple

from harness.core.errors import HarnessError
from harness.experiment.trial import Trial
from harness.running.pipeline import Pipeline
from harness.running.session import Session, StageContext, pipeline_for


class Work(NamedTuple):
    """Work done: the number of artifacts built, by stage (texts for `embed`), and the damaged files found."""

    built: dict[str, int]
    damaged: list[str]

    def add(self, done: "Work") -> None:
        """Add the work of a task."""
        for stage, count in done.built.items():
            self.built[stage] = self.built.get(stage, 0) + count
        self.damaged.extend(done.damaged)

    def add_task(self, task: "Future[Work]") -> None:
        """Wait for a task and add its work. Raises HarnessError if its worker process died."""
        try:
            self.add(task.result())
        except BrokenExecutor as error:
            raise HarnessError(
                "a worker process died (killed, or out of memory); run again to resume, with fewer --workers"
            ) from error

    @contextlib.contextmanager
    def counting(self, session: Session, trials: Sequence[Trial]) -> Iterator[None]:
        """Add the work that the trials' pipelines do inside the block, in this process."""
        pipelines = {id(pipeline): pipeline for pipeline in map(session.pipeline, trials)}
        with contextlib.ExitStack() as stack:
            counts = [stack.enter_context(counted(pipeline)) for pipeline in pipelines.values()]
            yield
        for done in counts:
            self.add(done)


@contextlib.contextmanager
def counted(pipeline: Pipeline) -> Iterator[Work]:
    """Count what a pipeline builds inside the block. The yielded Work is filled in when the block ends."""
    work = Work({}, [])
    before, damaged, files = dict(pipeline.store.built), len(pipeline.store.damaged), pipeline.vectors.damaged
    yield work
    for stage, count in pipeline.store.built.items():
        if count > before.get(stage, 0):
            work.built[stage] = count - before.get(stage, 0)
    work.damaged.extend(pipeline.store.damaged[damaged:])
    work.damaged.extend(["vectors.sqlite"] * (pipeline.vectors.damaged - files))


def chunk(trial_json: str, place: StageContext) -> Work:
    """Chunk and augment the corpus of a trial."""
    return _done(trial_json, place, Pipeline.passages)


def retrieve(trial_json: str, place: StageContext) -> Work:
    """Retrieve for a trial."""
    return _done(trial_json, place, Pipeline.rankings)


def score(trial_json: str, place: StageContext) -> Work:
    """Retrieve, select and score for a trial."""
    return _done(trial_json, place, Pipeline.scores)


def _done(trial_json: str, place: StageContext, stage: Callable[[Pipeline, Trial], object]) -> Work:
    trial, pipeline = Trial.from_json(trial_json), pipeline_for(place)
    with counted(pipeline) as work:
        stage(pipeline, trial)
    return work
