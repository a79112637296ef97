"""The harness' face: what a researcher imports, each name loaded when first used, so that start-up stays light."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.components.component import Component, post_answer, runtime
    from harness.components.context_window import allocate
    from harness.components.llm_roles import LlmAugmenter, LlmChunker, LlmJudge, LlmReranker
    from harness.components.roles import (
        Augmenter,
        Chunker,
        Embedder,
        EmbeddingChunker,
        Fusion,
        FusionContext,
        Judge,
        LocalJudge,
        Reranker,
        Retriever,
        ScalesChunker,
        Selector,
        best_hits_first,
    )
    from harness.core.errors import ConfigError, DataError, HarnessError
    from harness.core.rankings import Rankings, best_first
    from harness.core.records import (
        Case,
        Chunk,
        Document,
        Drop,
        Embedded,
        Hit,
        Outcome,
        Query,
        Span,
        Spans,
        Vectors,
        spanning,
    )
    from harness.experiment.experiment import Experiment
    from harness.experiment.reader_price import Reader
    from harness.experiment.settings import Compare
    from harness.experiment.trial import Trial
    from harness.experiment.yaml_file import read_experiment
    from harness.run.launch import run
    from harness.run.launch_result import Launch
    from harness.run.models import Models
    from harness.run.plan import plan
    from harness.storage.store import Artifact

_HOME = {
    "harness.components.llm_roles": (
        "LlmAugmenter",
        "LlmChunker",
        "LlmJudge",
        "LlmReranker",
    ),
    "harness.components.component": (
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
        "FusionContext",
        "Selector",
        "best_hits_first",
        "runtime",
        "post_answer",
    ),
    "harness.components.context_window": ("allocate",),
    "harness.experiment.reader_price": ("Reader",),
    "harness.core.errors": ("ConfigError", "DataError", "HarnessError"),
    "harness.experiment.experiment": ("Compare", "Experiment", "Trial"),
    "harness.run.judging.judging": ("Models",),
    "harness.core.records": (
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
    "harness.storage.store": ("Artifact",),
    "harness.run.launch_result": ("Launch",),
    "harness.run.plan": ("plan",),
    "harness.run.launch": ("run",),
    "harness.experiment.yaml_file": ("read_experiment",),
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
    "FusionContext",
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
    "Selector",
    "Span",
    "Spans",
    "Trial",
    "Vectors",
    "allocate",
    "best_first",
    "best_hits_first",
    "plan",
    "post_answer",
    "read_experiment",
    "run",
    "runtime",
    "spanning",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'harness' has no attribute '{name}'")
    value = getattr(import_module(_MODULE[name]), name)
    globals()[name] = value
    return value
