"""All span measures against an implementation with sets of characters."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.records import Evidence, Span, TokenMap
from harness.evaluation.metrics import MEASURES, Items, Ranking
from harness.evaluation.metrics.matching import Passage

SPAN = st.builds(
    lambda doc, start, length: (doc, start, start + length),
    st.sampled_from("ab"),
    st.integers(0, 30),
    st.integers(1, 14),
)
ITEMS = st.lists(st.lists(SPAN, min_size=1, max_size=3), min_size=1, max_size=4)
RANKING = st.lists(SPAN, max_size=8)
Set = set[tuple[str, int]]


def members(span: tuple[str, int, int]) -> Set:
    return {(span[0], at) for at in range(span[1], span[2])}


def together(passages: list[tuple[str, int, int]]) -> Set:
    return set().union(*map(members, passages)) if passages else set()


def naive_found(
    items: list[list[tuple[str, int, int]]], ranking: list[tuple[str, int, int]], coverage: float
) -> list[int | None]:
    found: list[int | None] = []
    for places in items:
        ranks = [
            rank
            for rank in range(1, len(ranking) + 1)
            for place in places
            if (hit := len(members(place) & together(ranking[:rank]))) and hit >= coverage * len(members(place))
        ]
        found.append(min(ranks, default=None))
    return found


def naive(
    name: str, k: int, items: list[list[tuple[str, int, int]]], ranking: list[tuple[str, int, int]], coverage: float
) -> float:
    top = ranking[:k]
    ranks = sorted(rank for rank in naive_found(items, top, coverage) if rank)
    if name == "recall":
        return len(ranks) / len(items)
    if name == "hit":
        return float(bool(ranks))
    if name == "mrr":
        return 1 / ranks[0] if ranks else 0
    if name == "map":
        return sum(len({r for r in ranks if r <= rank}) / rank for rank in ranks) / len(items)
    if name == "ndcg":
        ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(items)) + 1))
        return min(1, sum(1 / math.log2(rank + 1) for rank in ranks) / ideal)
    if name == "precision":

        def relevant(chunk: tuple[str, int, int]) -> bool:
            return any(
                members(chunk) & members(place)
                and 2 * len(members(chunk) & members(place)) >= min(len(members(chunk)), len(members(place)))
                for places in items
                for place in places
            )

        return sum(map(relevant, top)) / k
    retrieved = together(top)
    gold: Set = set()
    for places in items:
        gold |= members(max(places, key=lambda place: len(members(place) & retrieved) / len(members(place))))
    shared = len(gold & retrieved)
    if name == "span_recall":
        return shared / len(gold)
    if name == "span_precision":
        return shared / len(retrieved) if retrieved else 0
    assert name == "span_iou"
    return shared / len(gold | retrieved)


@pytest.mark.parametrize(
    "name", ["recall", "hit", "mrr", "map", "ndcg", "precision", "span_recall", "span_precision", "span_iou"]
)
@given(items=ITEMS, ranking=RANKING, k=st.integers(1, 9), coverage=st.sampled_from([0.1, 0.5, 0.8, 1.0]))
@settings(max_examples=150, deadline=None)
def test_measures_agree_with_sets(
    name: str, items: list[list[tuple[str, int, int]]], ranking: list[tuple[str, int, int]], k: int, coverage: float
) -> None:
    """For any spans, copies and overlaps of chunks."""
    needed = Items(tuple(Evidence(tuple(Span(*p) for p in places)) for places in items), coverage, False)
    got = MEASURES[name](Ranking([Passage(*p) for p in ranking], needed), k)
    assert got == pytest.approx(naive(name, k, items, ranking, coverage), abs=1e-12)
    assert 0 <= got <= 1


@given(ranking=RANKING, budget=st.integers(1, 60), starts=st.sets(st.integers(0, 44), max_size=30))
@settings(max_examples=200, deadline=None)
def test_budgets_agree_with_counting_token_by_token(
    ranking: list[tuple[str, int, int]], budget: int, starts: set[int]
) -> None:
    """Walk down the ranking character by character and count each token that starts, until the budget is used up."""
    import numpy as np

    tokens = TokenMap(np.array(sorted(starts), np.int64))
    passages = [Passage(doc, start, end, tokens.count(start, end)) for doc, start, end in ranking]
    items = Items((Evidence((Span("a", 0, 5),)),), 0.5, False)
    got = Ranking(passages, items).within(budget, {"a": tokens, "b": tokens}, passages)
    left, shown = budget, []
    for doc, start, end in ranking:
        if left <= 0:
            break
        stop = start
        while stop < end and (stop not in starts or left > 0):
            left -= stop in starts
            stop += 1
        shown.append((doc, start, stop))
        if stop < end:
            break
    assert [(p.doc, p.start, p.end) for p in got.passages] == shown
    assert sum(p.tokens for p in got.passages) <= budget
