"""Selectors: one class per file, each a step from hits to the passages that are kept."""

from harness.selectors.adaptive import Adaptive
from harness.selectors.confidence_k import ConfidenceK
from harness.selectors.context_budget import ContextBudget
from harness.selectors.dedup import Dedup
from harness.selectors.diversify import Diversify
from harness.selectors.elbow import Elbow
from harness.selectors.merge_adjacent import MergeAdjacent
from harness.selectors.metadata_boost import MetadataBoost
from harness.selectors.mmr import MMR
from harness.selectors.multi_signal import MultiSignal
from harness.selectors.normalize import Normalize
from harness.selectors.query_adaptive import QueryAdaptive
from harness.selectors.rerank import Rerank
from harness.selectors.rerank_api import RerankApi
from harness.selectors.rerank_llm import RerankLlm
from harness.selectors.task_k import TaskK
from harness.selectors.threshold import Threshold
from harness.selectors.token_budget import TokenBudget
from harness.selectors.top_k import TopK

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
