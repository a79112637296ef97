"""How long a launch will take, by the pace of earlier launches on the same store."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.core.errors import HarnessError
from harness.core.progress import duration, progress
from harness.running.session import Session
from harness.running.stage_tasks import stage_tasks
from harness.running.stages.embed import TextsToEmbed, pace_kind
from harness.running.stages.graph import Graph
from harness.storage.paces import Paces

_BLOCKS, _BLOCK = 4, 24
"""How many texts are embedded to measure a pace that is not known: blocks of texts of similar length, as in a run."""
_WORTH = 200_000
"""Characters: embedding fewer takes too little time to measure it first."""


@dataclass(frozen=True)
class TimeEstimate:
    """The seconds of each kind of work, on one worker, and the kinds whose pace is not known yet."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    unknown: Sequence[str] = ()

    @property
    def total(self) -> float | None:
        """The seconds in all; None if a pace is not known."""
        return None if self.unknown else sum(self.seconds.values())

    def __str__(self) -> str:
        if not self.seconds and not self.unknown:
            return "time: nothing left to compute"
        if self.unknown and sum(self.seconds.values()) < 1:
            return f"time: not measured here yet: {', '.join(self.unknown)}"
        slow = [(name, seconds) for name, seconds in self.seconds.items() if seconds >= 1]
        parts = [f"{name} {duration(seconds)}" for name, seconds in sorted(slow, key=lambda pair: -pair[1])]
        text = f"time: about {duration(sum(self.seconds.values()))} on one worker"
        text += f" ({', '.join(parts)})" if len(parts) > 1 else ""
        return f"{text}; not measured here yet: {', '.join(self.unknown)}" if self.unknown else text


def estimate_time(session: Session, graph: Graph, texts: Sequence[TextsToEmbed], calls: int = 0) -> TimeEstimate:
    """Return how long the stages of a graph will take, with the texts to embed and the calls to models.

    A local embedder whose pace is not known is measured on a few of the texts.
    """
    paces, size = Paces(session.store), session.corpus_bytes
    seconds: dict[str, float] = {}
    unknown = []
    tasks = Counter(task.stage.name for task in stage_tasks(graph, graph.stored()).values())
    stages = {name: paces.seconds(f"stage {name}", count * size) for name, count in tasks.items()}
    seconds |= {name: found for name, found in stages.items() if found is not None}
    if None in stages.values():
        unknown.append("other stages" if seconds or texts else "all stages")
    for wanted in texts:
        length = sum(map(len, (*wanted.documents, *wanted.queries)))
        found = paces.seconds(pace_kind(wanted.embedder), length) if length else 0.0
        if found is None and not wanted.embedder.metered:
            found = _probed(wanted, paces, length)
        if found is None:
            unknown.append(f"embedding with {wanted.label}")
        elif length:
            seconds[f"embedding with {wanted.label}"] = found
    if calls:
        found = paces.seconds("ask", calls)
        if found is None:
            unknown.append("calls to models")
        else:
            seconds["calls to models"] = found
    return TimeEstimate(seconds, unknown)


def _probed(wanted: TextsToEmbed, paces: Paces, length: int) -> float | None:
    """Seconds to embed texts of so many characters, by the pace on a few of them; None if that cannot be measured.

    The pace is kept until a launch measures it better.
    """
    embedder, texts = wanted.embedder, wanted.documents
    if length < _WORTH or len(texts) < _BLOCKS * _BLOCK:
        return None
    ordered = sorted(texts, key=len)
    starts = [(2 * at + 1) * (len(ordered) - _BLOCK) // (2 * _BLOCKS) for at in range(_BLOCKS)]
    some = [text for start in starts for text in ordered[start : start + _BLOCK]]
    try:
        with progress(f"measure {wanted.label}", len(some), unit="texts") as advance:
            embedder.embed(some[:2])  # loads the model
            begin = time.perf_counter()
            for start in range(0, len(some), _BLOCK):
                embedder.embed(some[start : start + _BLOCK])
                advance(_BLOCK)
    except (HarnessError, OSError):
        return None  # the run reports it
    paces.note(pace_kind(embedder), sum(map(len, some)), time.perf_counter() - begin)
    paces.save()
    return paces.seconds(pace_kind(embedder), length)
