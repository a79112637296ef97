"""Retrievers: one class per file, each ranking chunks for queries."""

from harness.retrievers.bm25 import BM25
from harness.retrievers.dense import Dense
from harness.retrievers.ensemble import Ensemble
from harness.retrievers.hybrid import Hybrid
from harness.retrievers.trec_run import TrecRun

BUILTINS = (Dense, BM25, Hybrid, Ensemble, TrecRun)

__all__ = ["BM25", "BUILTINS", "Dense", "Ensemble", "Hybrid", "TrecRun"]
