"""What a launch would take on several workers: wall time, dollars, and the bytes that move."""

import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from harness.running.planning.time_estimate import TimeEstimate
from harness.running.session import Session
from harness.running.stage_tasks import StageTask, inputs_of, stage_tasks, users_of
from harness.running.stages.embed import EmbedStage, TextsToEmbed
from harness.running.stages.graph import Graph
from harness.running.stages.stage import Stage, StoredStage
from harness.storage.paces import Paces


class Traffic(NamedTuple):
    """The bytes that move: of the data to each worker, of texts in tasks, to the store, and from it at most."""

    data: float
    texts: float
    written: float
    read: float


@dataclass(frozen=True)
class ClusterEstimate:
    """What a launch would take on `workers` workers. Sending and waiting are not counted."""

    workers: int
    accelerated: bool
    """Whether models run on accelerators."""
    time: TimeEstimate
    wall: float | None
    """Seconds; None if a pace is not known."""
    traffic: Traffic | None
    """None if the size of something is not known."""

    def usd(self, per_hour: float) -> float | None:
        """Return the dollars for all workers until the launch ends; None if its time is not known."""
        return None if self.wall is None else self.workers * self.wall / 3600 * per_hour


def estimate_cluster(
    session: Session, graph: Graph, time: TimeEstimate, texts: list[TextsToEmbed], workers: int, *, accelerated: bool
) -> ClusterEstimate:
    """Return what the stages of a graph, with the texts to embed, take on so many workers."""
    wall = None
    if time.total is not None:
        by_name = {part.name: part for part in time.parts if part.stage}
        models = sum(part.seconds or 0.0 for part in time.parts if not part.stage)

        def seconds(task: StageTask) -> float:
            part = by_name[task.stage.name]
            return (part.seconds or 0.0) / part.tasks

        phases = sum(_scheduled(graph, tasks, seconds, workers) for tasks in _phases(graph))
        wall = phases + models / workers + (time.calling or 0.0)
    return ClusterEstimate(workers, accelerated, time, wall, _traffic(session, graph, time, texts, workers))


def _phases(graph: Graph) -> Iterator[dict[str, StageTask]]:
    """The tasks that run before each round of models, and those after the last."""
    made: set[str] = set()
    for stages in graph.rounds():
        before = [one for one in graph.before(stage for stage, _ in stages) if one not in made]
        made.update(before)
        yield stage_tasks(graph, before)
    yield stage_tasks(graph, [one for one in graph.stored() if one not in made])


def _scheduled(
    graph: Graph, tasks: Mapping[str, StageTask], seconds: Callable[[StageTask], float], workers: int
) -> float:
    """The seconds until all tasks are done if each starts as soon as its inputs are made and a worker is free."""
    waits = inputs_of(graph, tasks)
    users = users_of(waits)
    ready = deque(address for address in tasks if not waits[address])
    running: list[tuple[float, str]] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < workers:
            address = ready.popleft()
            heapq.heappush(running, (now + seconds(tasks[address]), address))
        now, finished = heapq.heappop(running)
        for user in users.get(finished, ()):
            waits[user].discard(finished)
            if not waits[user]:
                ready.append(user)
    return now


def _traffic(
    session: Session, graph: Graph, time: TimeEstimate, texts: list[TextsToEmbed], workers: int
) -> Traffic | None:
    """The bytes that move, if all sizes are known. A worker keeps what it has read, so it reads everything once."""
    paces, size = Paces(session.store), session.corpus_bytes
    users, vectors, kinds = _readers(graph)
    sizes = {name: paces.expected(f"bytes {name}", size) for name in set(kinds.values())}
    written = [part.written for part in time.parts]
    stored = [wanted.work.vectors.size(wanted.embedder) for wanted in texts]
    if None in sizes.values() or None in written:
        return None
    read = sum(min(workers, count) * (sizes[kinds[address]] or 0.0) for address, count in users.items())
    new = sum(part.written or 0.0 for part in time.parts if not part.stage)
    old = sum(4.0 * count * dimensions for count, dimensions in stored)
    read += min(workers, vectors) * (new + old)
    files = (session.manifest.corpus, *(session.manifest.query_set(name) for name in session.query_sets))
    sent = sum(len(text.encode("utf-8", "surrogatepass")) for one in texts for text in one.both)
    data = sum(file.size for file in files)
    return Traffic(data, sent, sum(part or 0.0 for part in written), read)


def _readers(graph: Graph) -> tuple[Counter[str], int, dict[str, str]]:
    """How many tasks may read each artifact, how many read vectors, and the stage of each artifact."""
    users, vectors = Counter[str](), 0
    kinds: dict[str, str] = {}
    for task in stage_tasks(graph, graph.stored()).values():
        needed = {part.address: part for member in task.members for part in _needed(graph.nodes[member].stage)}
        for address in task.members:
            needed.pop(address, None)
        stored = [part for part in needed.values() if isinstance(part, StoredStage)]
        users.update(part.address for part in stored)
        kinds |= {part.address: part.name for part in stored}
        vectors += any(isinstance(part, EmbedStage) for part in needed.values())
    return users, vectors, kinds


def _needed(stage: Stage) -> Iterator[Stage]:
    """All that a stage needs, directly or not."""
    for part in stage.inputs:
        yield part
        yield from _needed(part)
