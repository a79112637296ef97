"""Evaluate retrieval: one YAML file becomes a scored grid of chunkers, retrievers and selectors in MLflow.

The public API; `__init__.pyi` lists it. What authors of components need besides is in `harness.components`.
"""

from harness.core.public_names import public_names

_MOVED = {
    "Searched": "from harness.components import FusionContext",
    "scoring": "from harness.components import post_answer",
    **{
        name: f"from harness.components import {name}"
        for name in (
            *("Artifact", "Case", "Component", "Embedded", "EmbeddingChunker", "Fusion", "LlmAugmenter", "LlmChunker"),
            *("LlmJudge", "LlmReranker", "LocalJudge", "Rankings", "Reranker", "ScalesChunker", "Span", "Vectors"),
            *("allocate", "best_first", "best_hits_first", "runtime", "spanning"),
        )
    },
}
"""What to write instead of names that were here before version 0.2."""

__getattr__, __dir__, __all__ = public_names(__name__, _MOVED)
