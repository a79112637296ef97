"""Every measure, one function each: a query's ranking and a rank cutoff in, one number out.

A token budget is not a second kind of measure: the ranking is first cut to the budget, then measured whole.
"""

import math
from collections.abc import Callable

from harness.metrics.chroma import chroma_iou, chroma_precision, chroma_precision_omega, chroma_recall
from harness.metrics.matching import Ranking

Measure = Callable[[Ranking, int | None], float]


def _found(ranking: Ranking, k: int | None) -> list[tuple[int, float]]:
    """`(rank, grade)` of the items found in the top k."""
    return ranking.gains if k is None else [gain for gain in ranking.gains if gain[0] <= k]


def recall(ranking: Ranking, k: int | None) -> float:
    """Evidence items found in the top k / all items (trec_eval `recall_k` on document evidence)."""
    return len(_found(ranking, k)) / len(ranking.items.evidence)


def hit(ranking: Ranking, k: int | None) -> float:
    """1 where any evidence item is found in the top k, else 0 (trec_eval `success_k`)."""
    return float(bool(_found(ranking, k)))


def mrr(ranking: Ranking, k: int | None) -> float:
    """1 / the rank at which the first evidence item is found, 0 where none is (trec_eval `recip_rank`)."""
    return 1 / min((rank for rank, _ in _found(ranking, k)), default=math.inf)


def ndcg(ranking: Ranking, k: int | None) -> float:
    """Discounted gain / that of an ideal ranking (Järvelin & Kekäläinen, TOIS 20(4), 2002; trec_eval `ndcg_cut_k`).

    Gain at a rank is the sum of the grades of the items newly found there, discounted by log2(rank + 1). The ideal has
    all items first, one a rank, highest grade first. A chunk that finds several items at once can beat that ideal; the
    value is then 1.
    """
    gained = sum(grade / math.log2(rank + 1) for rank, grade in _found(ranking, k))
    grades = sorted((item.grade for item in ranking.items.evidence), reverse=True)
    ideal = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades[:k], 1))
    return min(1.0, gained / ideal) if ideal else 0.0


def map_(ranking: Ranking, k: int | None) -> float:
    """Mean over all items of the precision at the rank that finds them, 0 for those not found (trec_eval `map_cut_k`).

    Precision at a rank is the share of ranks down to it that find something new, so that a chunk finding two items at
    rank 1 scores 1, not 2. Divided by the number of items, never by the number of hits.
    """
    ranks = sorted(rank for rank, _ in _found(ranking, k))
    finding = sorted(set(ranks))
    return sum((finding.index(rank) + 1) / rank for rank in ranks) / len(ranking.items.evidence)


def precision(ranking: Ranking, k: int | None) -> float:
    """Relevant passages in the top k / k; fewer than k retrieved still divides by k (trec_eval `P_k`).

    Without a cutoff, and at a token budget, the divisor is the number of passages; nothing retrieved gives 0.
    """
    depth = len(ranking.passages) if k is None else k
    return sum(rank <= depth for rank in ranking.relevant) / depth if depth else 0.0


def span_recall(ranking: Ranking, k: int | None) -> float:
    """Gold characters in the union of the top k / gold characters."""
    shared, gold, _ = ranking.characters(k)
    return shared / gold


def span_precision(ranking: Ranking, k: int | None) -> float:
    """Gold characters in the union of the top k / characters of that union; nothing retrieved gives 0."""
    shared, _, retrieved = ranking.characters(k)
    return shared / retrieved if retrieved else 0.0


def span_iou(ranking: Ranking, k: int | None) -> float:
    """Characters in both the union of the top k and gold / characters in either."""
    shared, gold, retrieved = ranking.characters(k)
    return shared / (gold + retrieved - shared)


def precision_omega(ranking: Ranking, k: int | None) -> float:
    """`span_precision` of an oracle that retrieves all evidence-bearing chunks of the corpus, and only they.

    What the chunker alone makes possible (Smith & Troynikov, Evaluating Chunking Strategies for Retrieval, Chroma
    2024). The ranking given must be that of the oracle: all chunks that share a character with the first place of an
    item.
    """
    return span_precision(ranking, None)


MEASURES: dict[str, Measure] = {
    "recall": recall,
    "hit": hit,
    "mrr": mrr,
    "ndcg": ndcg,
    "map": map_,
    "precision": precision,
    "span_recall": span_recall,
    "span_precision": span_precision,
    "span_iou": span_iou,
    "precision_omega": precision_omega,
    "chroma_recall": chroma_recall,
    "chroma_precision": chroma_precision,
    "chroma_iou": chroma_iou,
    "chroma_precision_omega": chroma_precision_omega,
}
SPAN_MEASURES = {name for name in MEASURES if name.startswith(("span_", "chroma_", "precision_omega"))}
ORACLE_MEASURES = {"precision_omega", "chroma_precision_omega"}
