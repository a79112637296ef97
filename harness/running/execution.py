"""The execution of a graph: stages are made on an executor as soon as their inputs are, and models asked in between.

If a stage fails, the stages that do not need it are made nevertheless, except that nothing more is paid for.
"""

import contextlib
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from dataclasses import replace

from harness.core.errors import HarnessError, JudgeError, StoreError
from harness.core.progress import progress
from harness.running.executors import Engine
from harness.running.far_work import FarWork
from harness.running.stage_tasks import Batches, StageTask, inputs_of, stage_tasks, users_of
from harness.running.stages.graph import Graph
from harness.running.stages.model_access import ModelAccess
from harness.running.stages.stage import ModelStage
from harness.running.stages.stage_json import stage_json
from harness.running.stages.workspace import Workspace
from harness.running.task import Done, Work, counted, make_stages

_FATAL = (BrokenExecutor, StoreError, JudgeError, MemoryError)
"""Failures of a task after which no other task would do better."""


class Execution:
    """Makes all stages of a graph. `work` counts what was done."""

    def __init__(self, graph: Graph, engine: Engine, models: ModelAccess, size: int = 0) -> None:
        """`size` is that of the corpus in bytes, to which the time that a stage takes is in proportion."""
        self.work = Work({}, {}, [])
        models = replace(models, elsewhere=FarWork(engine, self.work)) if engine.far else models
        self._graph, self._engine, self._models, self._size = graph, engine, models, size
        self._made: set[str] = set()
        self.lost: dict[str, Exception] = {}
        """The failure of each stage that cannot be made."""
        self._skipped: set[str] = set()
        self._batches = Batches(engine, lambda name: models.paces.expected(f"stage {name}", size))
        self._progress = self._all()

    def until(self, address: str) -> Exception | None:
        """Go on until a stage is made; return the failure that prevents it, if any.

        Raises what nothing can be made after: a full disk, a dead worker, a model that cannot be asked.
        """
        while address in self._graph.nodes and not self._is_settled(address):
            next(self._progress)
        unmade = address in self.lost or address in self._skipped
        return self.lost.get(address, next(iter(self.lost.values()))) if unmade else None

    def _is_settled(self, address: str) -> bool:
        return address in self._made or address in self.lost or address in self._skipped

    def finish(self) -> None:
        """Make what is left."""
        for _ in self._progress:
            pass

    def _all(self) -> Iterator[None]:
        for stages in self._graph.rounds():
            yield from self._make(self._graph.before(stage for stage, _ in stages))
            stages = [(stage, work) for stage, work in stages if not self._is_settled(stage.address)]
            for stage, _ in stages if self.lost else ():
                if stage.charges:
                    self._skipped |= self._graph.reach(stage.address)
            self._fetch([(stage, work) for stage, work in stages if stage.address not in self._skipped])
            yield
        yield from self._make(self._graph.stored())

    def _fetch(self, stages: Sequence[tuple[ModelStage, Workspace]]) -> None:
        """Fetch what stages of one kind lack."""
        if not stages:
            return
        begin, calls = time.perf_counter(), self._models.caller.spend.calls
        with contextlib.ExitStack() as stack:
            spaces = {id(work): work for _, work in stages}
            counts = [stack.enter_context(counted(work)) for work in spaces.values()]
            with self._one_line():
                type(stages[0][0]).fetch(stages, self._models)
        self._models.paces.note("ask", self._models.caller.spend.calls - calls, time.perf_counter() - begin)
        for done in counts:
            self.work.add(done)
        self._made.update(stage.address for stage, _ in stages)

    def _lose(self, address: str, error: Exception) -> None:
        """Give up a stage and all that need it."""
        for lost in self._graph.reach(address):
            self.lost.setdefault(lost, error)

    def _make(self, addresses: Sequence[str]) -> Iterator[None]:
        """Make stages, listed after their inputs; yield whenever some are made."""
        tasks = stage_tasks(self._graph, [one for one in addresses if not self._is_settled(one)])
        waits = inputs_of(self._graph, tasks)
        users = users_of(waits)
        ready = deque(task for task in tasks.values() if not waits[task.address])
        running: dict[Future[Done], list[StageTask]] = {}
        left = len(tasks)
        unmade = Counter(task.stage.name for task in tasks.values())
        title, seconds = _title(tasks.values()), lambda: self._batches.seconds_left(unmade)
        with progress(title, len(tasks), unit="stages", left=seconds) as advance:
            while ready or running:
                while ready and len(running) < self._engine.at_once:
                    batch = self._batches.next(ready)
                    texts = [stage_json(task.stage) for task in batch]
                    here = self._batches.better_here(batch, left, alone=not running and not ready)
                    context = batch[0].context if here else self._engine.sent(batch[0].context)
                    with self._one_line():
                        future = self._engine.submit(make_stages, texts, context, here=here)
                    running[future] = batch
                    left -= len(batch)
                with self._one_line():
                    finished = self._engine.wait(running)
                for future in finished:
                    batch = running.pop(future)
                    with self._one_line():
                        again = self._finished(batch, future)
                    ready.extend(again)
                    left += len(again)
                    made = [task for task in batch if task.address in self._made]
                    unmade.subtract(task.stage.name for task in made)
                    advance(len(made))
                    for task in made:
                        for user in users.get(task.address, ()):
                            waits[user].discard(task.address)
                            if not waits[user] and user not in self.lost:
                                ready.append(tasks[user])
                yield

    @contextlib.contextmanager
    def _one_line(self) -> Iterator[None]:
        """Report a failure of the engine in one line: the death of a worker, or a scheduler that is gone."""
        try:
            yield
        except Exception as error:
            message = self._engine.failure(error)
            if not message:
                raise
            raise HarnessError(message) from error

    def _finished(self, batch: list[StageTask], future: Future[Done]) -> list[StageTask]:
        """Record a finished batch; return the tasks to run again: those of a batch that failed, one by one."""
        try:
            self._record(batch, future.result())
            return []
        except _FATAL:
            raise
        except Exception as error:
            if self._engine.failure(error):
                raise
            if len(batch) > 1:
                self._batches.split(batch)
                return batch
            failed = batch[0].address
            is_new = str(error) not in map(str, self.lost.values())
            self._lose(failed, error)
            if is_new and not all(map(self._is_settled, self._graph.nodes)):
                self._models.notify(f"{error}; making what does not need it")
            return []

    def _record(self, batch: Sequence[StageTask], done: Done) -> None:
        self.work.add(done.work)
        self._batches.note(batch, done)
        name, units = batch[0].stage.name, len(batch) * self._size
        self._models.paces.note(f"stage {name}", units, done.seconds)
        # A stage that only passes its input on writes nothing.
        built = {name: len(batch)} | done.work.built
        for made, count in built.items():
            self._models.paces.note(f"bytes {made}", count * self._size, done.work.written.get(made, 0))
        self._made.update(member for task in batch for member in task.members)


def with_reach(error: Exception, lost: Sequence[str], count: int) -> Exception:
    """Return the failure of a stage with the trials that need it, `lost`, of `count` in all."""
    if len(lost) == count:
        return error
    names = ", ".join(lost) if len(lost) <= 5 else f"{', '.join(lost[:4])} and {len(lost) - 4} more"
    message = f"{len(lost)} of {count} trials are not scored: {names}; the results of the others are stored"
    if isinstance(error, HarnessError):
        made = type(error)(f"{error}; {message}", *error.args[1:])
        made.__cause__ = error
        return made
    error.add_note(message)
    return error


def _title(tasks: Iterable[StageTask]) -> str:
    return ", ".join(dict.fromkeys(task.stage.name for task in tasks))
