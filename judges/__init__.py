"""Judges of retrieved passages: two that call a language model, two heuristics, and one that reads recorded grades."""

from judges.context_precision import ContextPrecision
from judges.context_recall import Claims, ContextRecall
from judges.heuristic_precision import HeuristicPrecision
from judges.heuristic_recall import HeuristicRecall
from judges.recorded import Recorded

BUILTINS = (ContextPrecision, ContextRecall, HeuristicPrecision, HeuristicRecall, Recorded)

__all__ = [
    "BUILTINS",
    "Claims",
    "ContextPrecision",
    "ContextRecall",
    "HeuristicPrecision",
    "HeuristicRecall",
    "Recorded",
]
