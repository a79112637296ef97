"""The harness' face: what a researcher imports, each name loaded when first used, so that start-up stays light."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.asking import LlmAugmenter, LlmChunker, LlmJudge, LlmReranker
    from harness.budget import allocate
    from harness.component import (
        Augmenter,
        Chunker,
        Component,
        Embedder,
        EmbeddingChunker,
        Fusion,
        Judge,
        LocalJudge,
        Reranker,
        Retriever,
        ScalesChunker,
        Searched,
        Selector,
        best_hits_first,
        runtime,
        scoring,
    )
    from harness.errors import ConfigError, DataError, HarnessError
    from harness.experiment import Compare, Experiment, Trial
    from harness.judging import Models
    from harness.launch import Launch
    from harness.launching import run
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
        spanning,
    )
    from harness.planning import plan
    from harness.reader import Reader
    from harness.store import Artifact
    from harness.yaml_file import read_experiment

_HOME = {
    "harness.asking": (
        "LlmAugmenter",
        "LlmChunker",
        "LlmJudge",
        "LlmReranker",
    ),
    "harness.component": (
        "Augmenter",
        "Chunker",
        "Component",
        "Embedder",
        "EmbeddingChunker",
        "Fusion",
        "Judge",
        "LocalJudge",
        "Reranker",
        "Retriever",
        "ScalesChunker",
        "Searched",
        "Selector",
        "best_hits_first",
        "runtime",
        "scoring",
    ),
    "harness.budget": ("allocate",),
    "harness.reader": ("Reader",),
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
        "spanning",
    ),
    "harness.store": ("Artifact",),
    "harness.launch": ("Launch",),
    "harness.planning": ("plan",),
    "harness.launching": ("run",),
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
    "EmbeddingChunker",
    "Experiment",
    "Fusion",
    "HarnessError",
    "Hit",
    "Judge",
    "Launch",
    "LlmAugmenter",
    "LlmChunker",
    "LlmJudge",
    "LlmReranker",
    "LocalJudge",
    "Models",
    "Outcome",
    "Query",
    "Rankings",
    "Reader",
    "Reranker",
    "Retriever",
    "ScalesChunker",
    "Searched",
    "Selector",
    "Span",
    "Spans",
    "Trial",
    "Vectors",
    "allocate",
    "best_first",
    "best_hits_first",
    "plan",
    "read_experiment",
    "run",
    "runtime",
    "scoring",
    "spanning",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'harness' has no attribute '{name}'")
    value = getattr(import_module(_MODULE[name]), name)
    globals()[name] = value
    return value
