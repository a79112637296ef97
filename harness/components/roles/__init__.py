"""The component roles of a trial: the inputs and outputs of each.

A role says what it needs (vectors, answers of a language model, the corpus, rankings); the harness provides it.
"""

from collections.abc import Mapping

from harness.components.component import Component
from harness.components.roles.augmenter import Augmenter, BaseAugmenter
from harness.components.roles.chunker import (
    BaseChunker,
    Chunker,
    CutInputs,
    CutRequest,
    EmbeddingChunker,
    ScalesChunker,
)
from harness.components.roles.embedder import Embedder
from harness.components.roles.judge import Judge, LocalJudge, judge_measures
from harness.components.roles.metric import Metric, Selected
from harness.components.roles.passage_retriever import (
    Exchange,
    PassageReplay,
    PassageRetriever,
    PassageService,
    SystemAnswer,
    SystemHit,
)
from harness.components.roles.retriever import (
    BaseRetriever,
    Batch,
    DatabaseRetriever,
    Fusion,
    FusionContext,
    IndexPlace,
    PartedIndex,
    Replay,
    Retriever,
    Scale,
    SearchInputs,
)
from harness.components.roles.selector import BaseReranker, Reranker, Selector, best_hits_first

__all__ = [
    "ROLES",
    "Augmenter",
    "BaseAugmenter",
    "BaseChunker",
    "BaseReranker",
    "BaseRetriever",
    "Batch",
    "Chunker",
    "CutInputs",
    "CutRequest",
    "DatabaseRetriever",
    "Embedder",
    "EmbeddingChunker",
    "Exchange",
    "Fusion",
    "FusionContext",
    "IndexPlace",
    "Judge",
    "LocalJudge",
    "Metric",
    "PartedIndex",
    "PassageReplay",
    "PassageRetriever",
    "PassageService",
    "Replay",
    "Reranker",
    "Retriever",
    "Scale",
    "ScalesChunker",
    "SearchInputs",
    "Selected",
    "Selector",
    "SystemAnswer",
    "SystemHit",
    "best_hits_first",
    "judge_measures",
]

ROLES: Mapping[str, type[Component]] = {
    role.role: role for role in (BaseChunker, BaseAugmenter, Embedder, BaseRetriever, Selector, Judge, Metric)
}
"""The base class of each role, by the role's name."""
