"""Judges of what a trial selected: two that ask a language model, two that ask no one, and one that is a file."""

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
