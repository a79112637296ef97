"""What a launch would do and cost, before it does anything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from harness.experiment import Experiment
from harness.session import Session, default_store


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
    for label, (embedder, pipeline, documents, queries) in session.to_embed().items():
        count = pipeline.tokens
        texts[label] = len(documents) + len(queries)
        tokens[label] = sum(map(count, documents)) + sum(map(count, queries))
        usd[label] = None if embedder.price is None else tokens[label] * embedder.price / 1e6
    return Plan(planned, texts, tokens, usd)
