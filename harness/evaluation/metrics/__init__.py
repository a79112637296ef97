"""Retrieval measures for evidence spans and documents, at rank and token cutoffs."""

from harness.evaluation.metrics.loss_attribution import CAUSES, EvidencePath, Step, losses
from harness.evaluation.metrics.matching import Items, Ranking
from harness.evaluation.metrics.measures import MEASURES
from harness.evaluation.metrics.names import Metric, is_metric, parse_metric, split_metric
from harness.evaluation.metrics.scoring import score_queries

__all__ = [
    "CAUSES",
    "MEASURES",
    "EvidencePath",
    "Items",
    "Metric",
    "Ranking",
    "Step",
    "is_metric",
    "losses",
    "parse_metric",
    "score_queries",
    "split_metric",
]
