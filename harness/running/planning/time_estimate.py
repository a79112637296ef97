"""How long the work of a launch will take, by the pace of earlier launches on the same store."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.core.progress import duration
from harness.running.executors import Engine
from harness.running.planning.model_timing import time_embedder
from harness.running.session import Session
from harness.running.stage_tasks import stage_tasks, stored_stage
from harness.running.stages.embed import TextsToEmbed, pace_kind
from harness.running.stages.graph import Graph
from harness.running.stages.model_access import labelled
from harness.running.stages.rerank import rerank_pace
from harness.running.stages.select import Rerank
from harness.storage.paces import Paces

_WORTH = 200_000
"""Characters: embedding fewer takes too little time to measure it first."""
_BATCH_SECONDS = 10.0
"""About how long a task lasts that embeds or reranks on a cluster."""
_KEY_BYTES = 33
"""Stored with each vector: the SHA-256 of its text, and whether the text was truncated."""


@dataclass(frozen=True)
class WorkPart:
    """One kind of work of a launch: a kind of stage, or what one model does."""

    name: str
    tasks: int
    seconds: float | None
    """On one worker; None if the pace is not known."""
    written: float | None = None
    """The bytes that it adds to the store; None if not known."""
    stage: bool = True
    """Whether it is a kind of stage. If not, it is the work of a model on this machine or on workers."""
    at_most: bool = False
    """Whether this is an upper bound."""


@dataclass(frozen=True)
class TimeEstimate:
    """The work of a launch by kind, and the seconds that calls to models take."""

    parts: Sequence[WorkPart] = ()
    calls: int = 0
    calling: float | None = 0.0
    """Seconds; None if the pace is not known."""

    @property
    def unknown(self) -> list[str]:
        """The kinds of work whose pace is not known."""
        stages = [part.name for part in self.parts if part.stage and part.seconds is None]
        known = any(part.seconds is not None or not part.stage for part in self.parts)
        found = [("other stages" if known else "all stages")] if stages else []
        found += [part.name for part in self.parts if not part.stage and part.seconds is None]
        return [*found, "calls to models"] if self.calling is None else found

    @property
    def total(self) -> float | None:
        """The seconds on one worker; None if a pace is not known."""
        return None if self.unknown else self.known

    @property
    def known(self) -> float:
        """The seconds on one worker of everything whose pace is known."""
        return sum(part.seconds or 0.0 for part in self.parts) + (self.calling or 0.0)

    def __str__(self) -> str:
        if not self.parts and not self.calls:
            return "time: nothing left to compute"
        unknown = ", ".join(self.unknown)
        if unknown and self.known < 1:
            return f"time: not measured here yet: {unknown}"
        named = [(part.name, part.seconds or 0.0) for part in self.parts] + [("calls to models", self.calling or 0.0)]
        slow = sorted(((name, seconds) for name, seconds in named if seconds >= 1), key=lambda pair: -pair[1])
        text = f"time: about {duration(self.known)} on one worker"
        text += f" ({', '.join(f'{name} {duration(seconds)}' for name, seconds in slow)})" if len(slow) > 1 else ""
        return f"{text}; not measured here yet: {unknown}" if unknown else text


def estimate_time(
    session: Session, graph: Graph, texts: Sequence[TextsToEmbed], engine: Engine, calls: int = 0
) -> TimeEstimate:
    """Return how long the stages of a graph will take, with the texts to embed and the calls to models.

    A local embedder whose pace is not known is measured on a few of the texts, on a worker of the engine.
    """
    paces = Paces(session.store)
    parts = [
        *_stages(session, graph, paces),
        *(_embedding(wanted, paces, engine) for wanted in texts if wanted.documents or wanted.queries),
        *_reranking(graph, paces),
    ]
    return TimeEstimate(parts, calls, paces.expected("ask", calls) if calls else 0.0)


def _stages(session: Session, graph: Graph, paces: Paces) -> Iterator[WorkPart]:
    """The stages, by name; those that are made in the task of another one count with that."""
    size, stored = session.corpus_bytes, graph.stored()
    tasks = Counter(task.stage.name for task in stage_tasks(graph, stored).values())
    artifacts = Counter(stored_stage(graph, address).name for address in stored)
    for name, count in artifacts.items():
        written = paces.expected(f"bytes {name}", count * size)
        seconds = paces.expected(f"stage {name}", tasks[name] * size) if tasks[name] else 0.0
        yield WorkPart(name, tasks[name], seconds, written)


def _embedding(wanted: TextsToEmbed, paces: Paces, engine: Engine) -> WorkPart:
    embedder, count = wanted.embedder, len(wanted.both)
    length = sum(map(len, wanted.both))
    _, dimensions = wanted.work.vectors.size(embedder)
    seconds = paces.expected(pace_kind(embedder), length)
    if seconds is None and not embedder.metered and length >= _WORTH:
        dimensions = time_embedder(wanted, paces, engine) or dimensions
        seconds = paces.expected(pace_kind(embedder), length)
    dimensions = dimensions or int(paces.expected(f"dimensions {pace_kind(embedder)}", 1) or 0)
    written = count * (4.0 * dimensions + _KEY_BYTES) if dimensions else None
    return WorkPart(f"embedding with {wanted.label}", _tasks(seconds), seconds, written, stage=False)


def _reranking(graph: Graph, paces: Paces) -> Iterator[WorkPart]:
    """Rerankers that compute scores themselves. Before retrieval, only an upper bound of their pairs is known."""
    pairs: dict[str, tuple[str, int]] = {}
    for stage, work in graph.of_kind(Rerank):
        step = stage.step
        if not step.metered and step.prompter is None:
            kind = rerank_pace(step)
            more = len(work.queries) * stage.rankings.retriever.depth
            pairs[kind] = (f"reranking with {labelled(step)}", more + (pairs[kind][1] if kind in pairs else 0))
    for kind, (name, count) in pairs.items():
        seconds = paces.expected(kind, count)
        yield WorkPart(name, _tasks(seconds), seconds, 0.0, stage=False, at_most=True)


def _tasks(seconds: float | None) -> int:
    return max(1, round((seconds or 0.0) / _BATCH_SECONDS))
