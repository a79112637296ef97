"""Retrievers: one class per file, each ranking chunks for queries."""

from harness.retrievers.bm25 import BM25
from harness.retrievers.dense import Dense
from harness.retrievers.ensemble import Ensemble
from harness.retrievers.hybrid import Hybrid

BUILTINS = (Dense, BM25, Hybrid, Ensemble)

__all__ = ["BM25", "BUILTINS", "Dense", "Ensemble", "Hybrid"]
