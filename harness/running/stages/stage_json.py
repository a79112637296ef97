"""Stages as JSON text, which is what crosses process boundaries: a worker makes the same stage of it."""

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from harness.components.component import Component
from harness.experiment.catalog import component, to_spec
from harness.running.stages.chunk import Chunk, ChunkPart
from harness.running.stages.contextualize import Contextualize
from harness.running.stages.embed_queries import QueryLatency
from harness.running.stages.index import Index, IndexPart
from harness.running.stages.locate import Locate
from harness.running.stages.retrieve import Retrieve, RetrievePart
from harness.running.stages.score import Score
from harness.running.stages.select import Select
from harness.running.stages.stage import StoredStage
from harness.running.stages.tokenize import Tokenize, TokenizePart

_KINDS: Mapping[str, type[StoredStage]] = {
    kind.__name__: kind
    for kind in (
        *(Tokenize, TokenizePart, Chunk, ChunkPart, Contextualize, QueryLatency),
        *(Locate, Index, IndexPart, Retrieve, RetrievePart, Select, Score),
    )
}


def stage_json(stage: StoredStage) -> str:
    """Return a stage as JSON text."""
    return json.dumps(_encoded(stage))


def read_stage(text: str) -> StoredStage:
    """Return the stage of a `stage_json` text."""
    stage = _decoded(json.loads(text))
    assert isinstance(stage, StoredStage)
    return stage


def component_json(component: Component) -> str:
    """Return a component as JSON text."""
    return json.dumps(_encoded(component))


def read_component(text: str) -> Component:
    """Return the component of a `component_json` text."""
    made = _decoded(json.loads(text))
    assert isinstance(made, Component)
    return made


def _encoded(value: Any) -> Any:
    if isinstance(value, StoredStage):
        return {"stage": type(value).__name__, **{f.name: _encoded(getattr(value, f.name)) for f in fields(value)}}
    if isinstance(value, Component):
        return {"component": value.role, "spec": to_spec(value)}
    return [_encoded(one) for one in value] if isinstance(value, tuple) else value


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_decoded, value))
    if isinstance(value, dict) and "stage" in value:
        kind = _KINDS[value["stage"]]
        return kind(**{name: _decoded(part) for name, part in value.items() if name != "stage"})
    if isinstance(value, dict):
        return component(value["component"], value["spec"], where="task", base_dir=Path("/"))
    return value
