"""All measures, one function each: from a query's ranking and a rank cutoff to one number.

What is special about a measure is declared above its function.

A token budget needs no measures of its own: the ranking is first cut to the budget, then measured without a cutoff.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from harness.evaluation.metrics.chroma_formulas import (
    chroma_iou,
    chroma_precision,
    chroma_precision_omega,
    chroma_recall,
)
from harness.evaluation.metrics.matching import Ranking

Function = TypeVar("Function", bound=Callable[..., float])


@dataclass(frozen=True)
class Measure:
    """A function of a query's ranking, with what it needs and what it takes.

    `evidence`: for span evidence only, for document-level evidence only (such as measures that need to know which
    documents were judged irrelevant), or for any. `cutoff`: whether it takes a rank or a token budget, nothing, or a
    recall level between 0 and 1. `oracle`: it does not look at the selection but at all chunks of the corpus that
    overlap the evidence, or also at those that only touch it. `counts`: the queries that have a value: those with
    relevant evidence, or also those with slight evidence or any judgment. `geometric`: its mean over queries is the
    geometric one.
    """

    function: Callable[[Ranking, Any], float]
    evidence: Literal["any", "spans", "documents"] = "any"
    cutoff: Literal["optional", "none", "level"] = "optional"
    oracle: Literal["no", "overlapping", "touching"] = "no"
    counts: Literal["relevant", "slight", "judged"] = "relevant"
    geometric: bool = False

    def __call__(self, ranking: Ranking, cutoff: float | None) -> float:
        """The value for a ranking, with a rank cutoff or a recall level."""
        return self.function(ranking, cutoff)

    @property
    def help(self) -> str:
        """One line on what it measures."""
        return (self.function.__doc__ or "").splitlines()[0]


MEASURES: dict[str, Measure] = {}
"""All measures, by name."""


def measure(name: str, **declared: Any) -> Callable[[Function], Function]:
    """Register a function as the measure `name`; `declared` are the fields of `Measure`."""

    def register(function: Function) -> Function:
        MEASURES[name] = Measure(function, **declared)
        return function

    return register


PERSISTENCE = 0.8
"""The persistence of `rbp`: the probability that a reader goes on to the next passage."""
GEOMETRIC_FLOOR = 1e-5
_SMOOTHING = 1e-5


def _found(ranking: Ranking, k: int | None) -> list[int]:
    """The ranks of the items found in the top k, in order."""
    return sorted(rank for rank in ranking.found if rank is not None and (k is None or rank <= k))


@measure("recall")
def recall(ranking: Ranking, k: int | None) -> float:
    """Evidence items found in the top k / all items (trec_eval `recall_k` on document evidence)."""
    return len(_found(ranking, k)) / len(ranking.items.evidence)


@measure("hit")
def hit(ranking: Ranking, k: int | None) -> float:
    """1 if any evidence item is found in the top k, else 0 (trec_eval `success_k`)."""
    return float(bool(_found(ranking, k)))


@measure("mrr")
def mrr(ranking: Ranking, k: int | None) -> float:
    """1 / the rank at which the first evidence item is found, or 0 if none is found (trec_eval `recip_rank`)."""
    return 1 / min(_found(ranking, k), default=math.inf)


@measure("ndcg", counts="slight")
def ndcg(ranking: Ranking, k: int | None) -> float:
    """Discounted gain / that of an ideal ranking (Järvelin & Kekäläinen, TOIS 20(4), 2002; trec_eval `ndcg_cut_k`).

    The gain at a rank is the sum of the grades of the items first found there, divided by log2(rank + 1). The ideal
    ranking starts with all items, one per rank, highest grade first. A chunk that finds several items at once can
    exceed this ideal; the value is then 1.
    """
    gained = sum(grade / math.log2(rank + 1) for rank, grade in ranking.gains if k is None or rank <= k)
    grades = sorted((item.grade for item in (*ranking.items.evidence, *ranking.items.slight)), reverse=True)
    ideal = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades[:k], 1))
    return min(1.0, gained / ideal) if ideal else 0.0


@measure("map")
def map_(ranking: Ranking, k: int | None) -> float:
    """Mean over all items of the precision at the rank that finds them, 0 if not found (trec_eval `map_cut_k`).

    The precision at a rank is the fraction of ranks up to it that find a new item, so a chunk that finds two items at
    rank 1 scores 1, not 2. The divisor is the number of items, never the number of hits.
    """
    ranks = _found(ranking, k)
    finding = sorted(set(ranks))
    return sum((finding.index(rank) + 1) / rank for rank in ranks) / len(ranking.items.evidence)


@measure("precision")
def precision(ranking: Ranking, k: int | None) -> float:
    """Relevant passages in the top k / k, also if fewer than k were retrieved (trec_eval `P_k`).

    Without a cutoff, and at a token budget, the divisor is the number of passages. 0 if nothing is retrieved.
    """
    depth = len(ranking.passages) if k is None else k
    return sum(rank <= depth for rank in ranking.relevant) / depth if depth else 0.0


@measure("span_recall", evidence="spans")
def span_recall(ranking: Ranking, k: int | None) -> float:
    """Gold characters in the union of the top k / all gold characters."""
    shared, gold, _ = ranking.characters(k)
    return shared / gold


@measure("span_precision", evidence="spans")
def span_precision(ranking: Ranking, k: int | None) -> float:
    """Gold characters in the union of the top k / characters of that union; 0 if nothing is retrieved."""
    shared, _, retrieved = ranking.characters(k)
    return shared / retrieved if retrieved else 0.0


@measure("span_iou", evidence="spans")
def span_iou(ranking: Ranking, k: int | None) -> float:
    """Characters in both the union of the top k and the gold spans / characters in either."""
    shared, gold, retrieved = ranking.characters(k)
    return shared / (gold + retrieved - shared)


@measure("precision_omega", evidence="spans", cutoff="none", oracle="overlapping")
def precision_omega(ranking: Ranking, k: int | None) -> float:
    """`span_precision` of an oracle that retrieves exactly the chunks of the corpus that overlap the evidence.

    It measures the chunker alone (Smith & Troynikov, Evaluating Chunking Strategies for Retrieval, Chroma 2024). The
    ranking must be that of the oracle: all chunks that share a character with the first place of an item.
    """
    return span_precision(ranking, None)


@measure("f1")
def f1(ranking: Ranking, k: int | None) -> float:
    """Harmonic mean of precision and recall (trec_eval `set_F`)."""
    exact, complete = precision(ranking, k), recall(ranking, k)
    return 2 * exact * complete / (exact + complete) if exact + complete else 0.0


@measure("rprec", cutoff="none")
def rprec(ranking: Ranking, k: int | None) -> float:
    """Evidence items found in the top R / R, where R is the number of items (trec_eval `Rprec`)."""
    return recall(ranking, len(ranking.items.evidence))


@measure("iprec", cutoff="level")
def iprec(ranking: Ranking, level: float) -> float:
    """Interpolated precision: the highest precision at any rank with recall `level` (trec_eval `iprec_at_recall`).

    The precision at a rank is that of `map`. The number of items needed is `level` times all items, rounded up from .1
    of an item on, as in trec_eval 9 (trec_eval 10 rounds to the nearest, so 47 of 474 items are a recall of .1 there).
    """
    ranks = _found(ranking, None)
    finding = sorted(set(ranks))
    needed = int(level * len(ranking.items.evidence) + 0.9)
    exact = [(at + 1) / rank for at, rank in enumerate(finding) if sum(found <= rank for found in ranks) >= needed]
    return max(exact, default=0.0) if len(ranks) >= needed else 0.0


@measure("11pt_avg", cutoff="none")
def eleven_point(ranking: Ranking, k: int | None) -> float:
    """Mean of `iprec` at the recall levels 0, 0.1 … 1 (trec_eval `11pt_avg`)."""
    return sum(iprec(ranking, level / 10) for level in range(11)) / 11


@measure("gm_map", cutoff="none", geometric=True)
def gm_map(ranking: Ranking, k: int | None) -> float:
    """`map` of one query; the mean over queries is the geometric mean (trec_eval `gm_map`).

    In the mean, values below .00001 count as .00001 (Robertson, On GMAP and other transformations, CIKM 2006).
    """
    return map_(ranking, None)


@measure("rbp")
def rbp(ranking: Ranking, k: int | None) -> float:
    """Rank-biased precision with persistence .8: the sum over relevant ranks of .2 * .8^(rank - 1).

    Moffat & Zobel, TOIS 27(1), 2008. Its max value in the top k is 1 - .8^k.
    """
    return sum((1 - PERSISTENCE) * PERSISTENCE ** (rank - 1) for rank in ranking.relevant if k is None or rank <= k)


@measure("bpref", evidence="documents", cutoff="none")
def bpref(ranking: Ranking, k: int | None) -> float:
    """Binary preference: how rarely documents judged irrelevant rank above relevant ones; ignores unjudged documents.

    Sum over the relevant documents retrieved of 1 - min(irrelevant documents above it, R) / min(all irrelevant
    documents, R), divided by the number R of relevant documents (Buckley & Voorhees, SIGIR 2004; trec_eval `bpref`).
    """
    irrelevant, count = _irrelevant(ranking), len(ranking.items.evidence)
    value, before = 0.0, 0
    for rank, passage in enumerate(ranking.passages, 1):
        if rank in ranking.relevant:
            value += 1 - min(before, count) / min(len(irrelevant), count) if before else 1.0
        elif passage.doc in irrelevant:
            before += 1
    return value / count


@measure("infap", evidence="documents", cutoff="none")
def infap(ranking: Ranking, k: int | None) -> float:
    """Average precision estimated from a sample of judgments (trec_eval `infAP`).

    The expected precision above a relevant document is the fraction of the documents there that are in the judgment
    pool, times the fraction of those judged that are relevant, smoothed by .00001 (Yilmaz & Aslam, CIKM 2006).
    """
    items, judged_irrelevant = ranking.items, _irrelevant(ranking)
    value = 0.0
    found = irrelevant = unjudged = 0
    for before, passage in enumerate(ranking.passages):
        if before + 1 in ranking.relevant:
            pooled = found + irrelevant + unjudged
            rate = (found + _SMOOTHING) / (found + irrelevant + 2 * _SMOOTHING)
            value += (1 + pooled * rate) / (before + 1)
            found += 1
        elif passage.doc in items.unjudged:
            unjudged += 1
        elif passage.doc in judged_irrelevant:
            irrelevant += 1
    return value / len(items.evidence)


@measure("judged", evidence="documents", counts="judged")
def judged(ranking: Ranking, k: int | None) -> float:
    """The fraction of the top k documents (or of all, if fewer are retrieved) that were judged; 0 if there are none."""
    shown = ranking.passages[:k]
    known = _irrelevant(ranking) | {place.doc for item in ranking.items.evidence for place in item.places}
    return sum(passage.doc in known for passage in shown) / len(shown) if shown else 0.0


def _irrelevant(ranking: Ranking) -> set[str]:
    """Documents that were judged and are below the relevance threshold."""
    return {*ranking.items.irrelevant, *(place.doc for item in ranking.items.slight for place in item.places)}


for _name, _function in (
    ("chroma_recall", chroma_recall),
    ("chroma_precision", chroma_precision),
    ("chroma_iou", chroma_iou),
):
    measure(_name, evidence="spans")(_function)
measure("chroma_precision_omega", evidence="spans", cutoff="none", oracle="touching")(chroma_precision_omega)
TREC_NAMES = {
    "P": "precision@k",
    "recip_rank": "mrr",
    "success": "hit@k",
    "ndcg_cut": "ndcg@k",
    "map_cut": "map@k",
    "Rprec": "rprec",
    "iprec_at_recall": "iprec@0.1",
    "infAP": "infap",
    "set_P": "precision",
    "set_recall": "recall",
    "set_F": "f1",
    "set_map": "map",
    "11pt": "11pt_avg",
}
"""From trec_eval's names to the harness's names, for measures whose names differ."""
