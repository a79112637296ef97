"""The tasks of an execution: stages, merged with those that only they need, and batches that last about a second."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.running.executors import Engine
from harness.running.stages.graph import Graph
from harness.running.stages.stage import StoredStage
from harness.running.stages.workspace import StageContext
from harness.running.task import Done

TASK_SECONDS = 1.0
"""How long a task should take at least, so that what it costs to send does not matter."""


class StageTask(NamedTuple):
    """A stage to send, with those that only it needs: they are made with it."""

    address: str
    members: tuple[str, ...]
    stage: StoredStage
    context: StageContext
    light: bool
    reads_answers: bool


def stage_tasks(graph: Graph, addresses: Sequence[str]) -> dict[str, StageTask]:
    """Return a task for each stage by address, but none for a stage that only one of the others needs."""
    chosen, merged = set(addresses), set[str]()
    for address in addresses:
        inputs = graph.nodes[address].inputs
        merged |= {part for part in inputs if part in chosen and not graph.is_shared(part)}
    tasks = {}
    for address in addresses:
        if address not in merged:
            members = tuple(_with_merged(graph, address, merged))
            stages = [stored_stage(graph, member) for member in members]
            light, answers = all(one.light for one in stages), any(one.reads_answers for one in stages)
            context = graph.nodes[address].work.context
            tasks[address] = StageTask(address, members, stages[0], context, light, answers)
    return tasks


def inputs_of(graph: Graph, tasks: Mapping[str, StageTask]) -> dict[str, set[str]]:
    """Return the other tasks that each task waits for, by address."""
    needed = {
        address: {part for member in task.members for part in graph.nodes[member].inputs}
        for address, task in tasks.items()
    }
    return {address: parts & tasks.keys() for address, parts in needed.items()}


def users_of(waits: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return the tasks that wait for each task, by its address, of what each one waits for."""
    users: dict[str, list[str]] = {}
    for address, inputs in waits.items():
        for needed in inputs:
            users.setdefault(needed, []).append(address)
    return users


def _with_merged(graph: Graph, address: str, merged: set[str]) -> Iterator[str]:
    yield address
    for part in graph.nodes[address].inputs:
        if part in merged:
            yield from _with_merged(graph, part, merged)


def stored_stage(graph: Graph, address: str) -> StoredStage:
    """Return the stored stage of an address."""
    stage = graph.nodes[address].stage
    assert isinstance(stage, StoredStage)
    return stage


class Batches:
    """Puts tasks of one kind together, by how long their kind has taken so far."""

    def __init__(self, engine: Engine, recorded: Callable[[str], float | None] = lambda _: None) -> None:
        """`recorded` returns the seconds that a stage of a name took in earlier launches, if that is known."""
        self._engine, self._recorded = engine, recorded
        self._pace: dict[str, tuple[int, float]] = {}
        self._alone: set[str] = set()

    def next(self, ready: "deque[StageTask]") -> list[StageTask]:
        """Take the next tasks of one kind and context that together last about TASK_SECONDS."""
        batch = [ready.popleft()]
        if batch[0].address in self._alone:
            return batch
        count, seconds = self._pace.get(batch[0].stage.name, (0, 0.0))
        size = math.ceil(TASK_SECONDS * count / seconds) if seconds else 1
        size = min(size, math.ceil((len(ready) + 1) / self._engine.workers))
        while ready and len(batch) < size and self._go_together(batch[0], ready[0]):
            batch.append(ready.popleft())
        return batch

    def _go_together(self, one: StageTask, other: StageTask) -> bool:
        alike = one.stage.name == other.stage.name and one.context == other.context
        alike = alike and one.reads_answers == other.reads_answers
        return alike and other.address not in self._alone

    def better_here(self, batch: Sequence[StageTask], left: int, *, alone: bool) -> bool:
        """Whether to make a batch here: it is done sooner than by a worker that has yet to start, or reads answers.

        `left` tasks are still to go.
        """
        if self._engine.far:
            return batch[0].reads_answers
        if alone and len(batch) == 1:
            return True  # nothing else could run beside it
        count, seconds = self._pace.get(batch[0].stage.name, (0, 0.0))
        quick = all(task.light for task in batch)
        return quick and not (count and self._engine.pays(left * seconds / count))

    def seconds_left(self, unmade: Mapping[str, int]) -> float | None:
        """Return how long so many tasks will take, by the name of their stage; None before anything is known."""
        total = 0.0
        measured = [seconds / count for count, seconds in self._pace.values() if count]
        for name, number in unmade.items():
            count, seconds = self._pace.get(name, (0, 0.0))
            each = seconds / count if count else self._recorded(name)
            if each is None and not measured:
                return None
            total += number * (sum(measured) / len(measured) if each is None else each)
        return total / self._engine.workers

    def note(self, batch: Sequence[StageTask], done: Done) -> None:
        """Note how long a batch took."""
        count, seconds = self._pace.get(batch[0].stage.name, (0, 0.0))
        self._pace[batch[0].stage.name] = count + len(batch), seconds + done.seconds

    def split(self, batch: Sequence[StageTask]) -> None:
        """Never put these tasks together with others again."""
        self._alone.update(task.address for task in batch)
