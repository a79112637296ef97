"""The harness' face: what a researcher imports, each name loaded when first used, so that start-up stays light."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.component import (
        Augmenter,
        Chunker,
        Component,
        Embedder,
        Fusion,
        Judge,
        LlmAugmenter,
        LlmJudge,
        LocalJudge,
        Retriever,
        Selector,
        runtime,
        scoring,
    )
    from harness.errors import ConfigError, DataError, HarnessError
    from harness.experiment import Compare, Experiment, Trial
    from harness.judging import Models
    from harness.launch import Launch
    from harness.model import (
        Case,
        Chunk,
        Document,
        Drop,
        Embedded,
        Hit,
        Outcome,
        Query,
        Rankings,
        Span,
        Spans,
        Vectors,
        best_first,
    )
    from harness.plan import plan
    from harness.run import run
    from harness.store import Artifact
    from harness.yaml_file import read_experiment

_HOME = {
    "harness.component": (
        "Augmenter",
        "Chunker",
        "Component",
        "Embedder",
        "Fusion",
        "Judge",
        "LlmAugmenter",
        "LlmJudge",
        "LocalJudge",
        "Retriever",
        "Selector",
        "runtime",
        "scoring",
    ),
    "harness.errors": ("ConfigError", "DataError", "HarnessError"),
    "harness.experiment": ("Compare", "Experiment", "Trial"),
    "harness.judging": ("Models",),
    "harness.model": (
        "Case",
        "Chunk",
        "Document",
        "Drop",
        "Embedded",
        "Hit",
        "Outcome",
        "Query",
        "Rankings",
        "Span",
        "Spans",
        "Vectors",
        "best_first",
    ),
    "harness.store": ("Artifact",),
    "harness.launch": ("Launch",),
    "harness.plan": ("plan",),
    "harness.run": ("run",),
    "harness.yaml_file": ("read_experiment",),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Artifact",
    "Augmenter",
    "Case",
    "Chunk",
    "Chunker",
    "Compare",
    "Component",
    "ConfigError",
    "DataError",
    "Document",
    "Drop",
    "Embedded",
    "Embedder",
    "Experiment",
    "Fusion",
    "HarnessError",
    "Hit",
    "Judge",
    "Launch",
    "LlmAugmenter",
    "LlmJudge",
    "LocalJudge",
    "Models",
    "Outcome",
    "Query",
    "Rankings",
    "Retriever",
    "Selector",
    "Span",
    "Spans",
    "Trial",
    "Vectors",
    "best_first",
    "plan",
    "read_experiment",
    "run",
    "runtime",
    "scoring",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'harness' has no attribute '{name}'")
    # `from harness import run` must give the function, though importing the module of that name binds it here too.
    value = getattr(import_module(_MODULE[name]), name)
    globals()[name] = value
    return value
