"""The execution of a graph: stages are made on an executor as soon as their inputs are, and models asked in between.

If a stage fails, the stages that do not need it are made nevertheless, except that nothing more is paid for.
"""

import contextlib
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from typing import NamedTuple

from harness.core.errors import HarnessError, JudgeError, StoreError
from harness.core.progress import progress
from harness.running.executors import Engine
from harness.running.stages.graph import Graph
from harness.running.stages.model_access import ModelAccess
from harness.running.stages.stage import ModelStage, StoredStage
from harness.running.stages.stage_json import stage_json
from harness.running.stages.workspace import StageContext, Workspace
from harness.running.task import Done, Work, counted, make_stages

TASK_SECONDS = 1.0
"""How long a task should take at least, so that what it costs to send does not matter."""


_FATAL = (BrokenExecutor, StoreError, JudgeError, MemoryError)
"""Failures of a task after which no other task would do better."""


class _Task(NamedTuple):
    """A stage to send, with those that only it needs: they are made with it."""

    address: str
    members: tuple[str, ...]
    stage: StoredStage
    context: StageContext
    light: bool


class Execution:
    """Makes all stages of a graph. `work` counts what was done."""

    def __init__(self, graph: Graph, engine: Engine, models: ModelAccess) -> None:
        self._graph, self._engine, self._models = graph, engine, models
        self.work = Work({}, [])
        self._made: set[str] = set()
        self.lost: dict[str, Exception] = {}
        """The failure of each stage that cannot be made."""
        self._skipped: set[str] = set()
        self._alone: set[str] = set()
        self._pace: dict[str, tuple[int, float]] = {}
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
        with contextlib.ExitStack() as stack:
            spaces = {id(work): work for _, work in stages}
            counts = [stack.enter_context(counted(work)) for work in spaces.values()]
            type(stages[0][0]).fetch(stages, self._models)
        for done in counts:
            self.work.add(done)
        self._made.update(stage.address for stage, _ in stages)

    def _lose(self, address: str, error: Exception) -> None:
        """Give up a stage and all that need it."""
        for lost in self._graph.reach(address):
            self.lost.setdefault(lost, error)

    def _make(self, addresses: Sequence[str]) -> Iterator[None]:
        """Make stages, listed after their inputs; yield whenever some are made."""
        tasks = self._tasks([one for one in addresses if not self._is_settled(one)])
        waits = {task.address: self._inputs_of(task, tasks) for task in tasks.values()}
        users: dict[str, list[str]] = {}
        for address, inputs in waits.items():
            for needed in inputs:
                users.setdefault(needed, []).append(address)
        ready = deque(task for task in tasks.values() if not waits[task.address])
        running: dict[Future[Done], list[_Task]] = {}
        left = len(tasks)
        with progress(_title(tasks.values()), len(tasks)) as advance:
            while ready or running:
                while ready and len(running) < self._engine.at_once:
                    batch = self._batch(ready)
                    texts = [stage_json(task.stage) for task in batch]
                    here = self._better_here(batch, left, alone=not running and not ready)
                    with _one_line():
                        future = self._engine.submit(make_stages, texts, batch[0].context, here=here)
                    running[future] = batch
                    left -= len(batch)
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    batch = running.pop(future)
                    with _one_line():
                        again = self._finished(batch, future)
                    ready.extend(again)
                    left += len(again)
                    made = [task for task in batch if task.address in self._made]
                    advance(len(made))
                    for task in made:
                        for user in users.get(task.address, ()):
                            waits[user].discard(task.address)
                            if not waits[user] and user not in self.lost:
                                ready.append(tasks[user])
                yield

    def _finished(self, batch: list[_Task], future: Future[Done]) -> list[_Task]:
        """Record a finished batch; return the tasks to run again: those of a batch that failed, one by one."""
        try:
            self._record(batch, future.result())
            return []
        except _FATAL:
            raise
        except Exception as error:
            if len(batch) > 1:
                self._alone.update(task.address for task in batch)
                return batch
            failed = batch[0].address
            if error not in self.lost.values():
                self._models.notify(f"{batch[0].stage.name}: {error}; making what does not need it")
            self._lose(failed, error)
            return []

    def _tasks(self, addresses: Sequence[str]) -> dict[str, _Task]:
        """A task for each stage, but none for a stage that only one of the others needs."""
        chosen, merged = set(addresses), set()
        for address in addresses:
            merged |= {part for part in self._graph.nodes[address].inputs if part in chosen and self._only_once(part)}
        tasks = {}
        for address in addresses:
            if address not in merged:
                members = tuple(self._with_merged(address, merged))
                stages = [self._stage(member) for member in members]
                context = self._graph.nodes[address].work.context
                light = all(stage.light for stage in stages)
                tasks[address] = _Task(address, members, self._stage(address), context, light)
        return tasks

    def _only_once(self, address: str) -> bool:
        return not self._graph.is_shared(address)

    def _with_merged(self, address: str, merged: set[str]) -> Iterator[str]:
        yield address
        for part in self._graph.nodes[address].inputs:
            if part in merged:
                yield from self._with_merged(part, merged)

    def _stage(self, address: str) -> StoredStage:
        stage = self._graph.nodes[address].stage
        assert isinstance(stage, StoredStage)
        return stage

    def _inputs_of(self, task: _Task, tasks: dict[str, _Task]) -> set[str]:
        """The other tasks that this one waits for."""
        needed = {part for member in task.members for part in self._graph.nodes[member].inputs}
        return needed & tasks.keys()

    def _batch(self, ready: "deque[_Task]") -> list[_Task]:
        """Take the next tasks of one kind and context that together last about TASK_SECONDS."""
        batch = [ready.popleft()]
        count, seconds = self._pace.get(batch[0].stage.name, (0, 0.0))
        size = math.ceil(TASK_SECONDS * count / seconds) if seconds else 1
        size = min(size, math.ceil((len(ready) + 1) / self._engine.workers))
        if batch[0].address in self._alone:
            return batch
        while ready and len(batch) < size and _alike(batch[0], ready[0]) and ready[0].address not in self._alone:
            batch.append(ready.popleft())
        return batch

    def _better_here(self, batch: Sequence[_Task], left: int, *, alone: bool) -> bool:
        """Whether a batch is done sooner here than by a worker that has yet to start; `left` tasks are still to go."""
        if alone and len(batch) == 1:
            return True  # nothing else could run beside it
        count, seconds = self._pace.get(batch[0].stage.name, (0, 0.0))
        quick = all(task.light for task in batch)
        return quick and not (count and self._engine.pays(left * seconds / count))

    def _record(self, batch: Sequence[_Task], done: Done) -> None:
        self.work.add(done.work)
        count, seconds = self._pace.get(batch[0].stage.name, (0, 0.0))
        self._pace[batch[0].stage.name] = count + len(batch), seconds + done.seconds
        self._made.update(member for task in batch for member in task.members)


def with_reach(error: Exception, lost: Sequence[str], count: int) -> Exception:
    """Return the failure of a stage with the trials that need it, `lost`, of `count` in all."""
    if len(lost) == count:
        return error
    names = ", ".join(lost) if len(lost) <= 5 else f"{', '.join(lost[:4])} and {len(lost) - 4} more"
    message = f"{len(lost)} of {count} trials are not scored: {names}; the results of the others are stored"
    if isinstance(error, HarnessError):
        made = type(error)(f"{error}; {message}")
        made.__cause__ = error
        return made
    error.add_note(message)
    return error


def _alike(one: _Task, other: _Task) -> bool:
    return one.stage.name == other.stage.name and one.context == other.context


def _title(tasks: Iterable[_Task]) -> str:
    return ", ".join(dict.fromkeys(task.stage.name for task in tasks))


@contextlib.contextmanager
def _one_line() -> Iterator[None]:
    """Report the death of a worker process in one line; it shows at its tasks, and when the next one is submitted."""
    try:
        yield
    except BrokenExecutor as error:
        raise HarnessError(
            "a worker process died (killed, or out of memory); run again to resume, with fewer --workers"
        ) from error
