"""Selectors: one class per file, each a step from hits to the passages that are kept."""

from harness.selectors.dedup import Dedup
from harness.selectors.threshold import Threshold
from harness.selectors.token_budget import TokenBudget
from harness.selectors.top_k import TopK

BUILTINS = (TopK, Threshold, Dedup, TokenBudget)

__all__ = ["BUILTINS", "Dedup", "Threshold", "TokenBudget", "TopK"]
