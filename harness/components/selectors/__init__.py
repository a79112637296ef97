"""Selectors: one class per file, each a step from hits to the selected passages."""

from harness.components.selectors.adaptive import Adaptive
from harness.components.selectors.confidence_k import ConfidenceK
from harness.components.selectors.context_budget import ContextBudget
from harness.components.selectors.dedup import Dedup
from harness.components.selectors.diversify import Diversify
from harness.components.selectors.elbow import Elbow
from harness.components.selectors.merge_adjacent import MergeAdjacent
from harness.components.selectors.metadata_boost import MetadataBoost
from harness.components.selectors.mmr import MMR
from harness.components.selectors.multi_signal import MultiSignal
from harness.components.selectors.normalize import Normalize
from harness.components.selectors.query_adaptive import QueryAdaptive
from harness.components.selectors.rerank import Rerank
from harness.components.selectors.rerank_api import RerankApi
from harness.components.selectors.rerank_llm import RerankLlm
from harness.components.selectors.task_k import TaskK
from harness.components.selectors.threshold import Threshold
from harness.components.selectors.token_budget import TokenBudget
from harness.components.selectors.top_k import TopK

BUILTINS = (
    Normalize,
    TopK,
    Threshold,
    Adaptive,
    QueryAdaptive,
    TaskK,
    ConfidenceK,
    Elbow,
    MMR,
    Dedup,
    Diversify,
    MetadataBoost,
    MultiSignal,
    Rerank,
    RerankApi,
    RerankLlm,
    MergeAdjacent,
    TokenBudget,
    ContextBudget,
)

__all__ = [
    "BUILTINS",
    "MMR",
    "Adaptive",
    "ConfidenceK",
    "ContextBudget",
    "Dedup",
    "Diversify",
    "Elbow",
    "MergeAdjacent",
    "MetadataBoost",
    "MultiSignal",
    "Normalize",
    "QueryAdaptive",
    "Rerank",
    "RerankApi",
    "RerankLlm",
    "TaskK",
    "Threshold",
    "TokenBudget",
    "TopK",
]
