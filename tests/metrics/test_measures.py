"""Every measure on examples worked by hand."""

import math

import numpy as np
import pytest

from harness.errors import ConfigError
from harness.metrics import MEASURES, Items, Ranking, parse_metric
from harness.metrics.matching import Passage
from harness.model import Evidence, Span, TokenMap


def spans(*places: tuple[str, int, int] | list[tuple[str, int, int]], coverage: float = 0.5) -> Items:
    """Items for span evidence; a list holds equivalent places of one item."""
    items = [place if isinstance(place, list) else [place] for place in places]
    return Items(tuple(Evidence(tuple(Span(*p) for p in item)) for item in items), coverage, False)


def documents(**grades: float) -> Items:
    return Items(tuple(Evidence((Span(doc, 0, 9),), grade, whole=True) for doc, grade in grades.items()), 0.5, True)


def value(name: str, passages: list[tuple[str, int, int]], items: Items) -> float:
    metric = parse_metric(name)
    return MEASURES[metric.measure](Ranking([Passage(*p) for p in passages], items), metric.k)


# Evidence: a[0:10] and a[30:40]. Ranking: b[0:10] misses, a[5:20] covers half of the first, a[30:50] all of the second.
TWO = spans(("a", 0, 10), ("a", 30, 40))
RANKED = [("b", 0, 10), ("a", 5, 20), ("a", 30, 50)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("recall@1", 0),
        ("recall@2", 1 / 2),
        ("recall@3", 1),
        ("hit@1", 0),
        ("hit@2", 1),
        ("mrr", 1 / 2),
        ("mrr@1", 0),
        ("map", (1 / 2 + 2 / 3) / 2),
        ("map@2", (1 / 2) / 2),
        ("ndcg@3", (1 / math.log2(3) + 1 / math.log2(4)) / (1 + 1 / math.log2(3))),
        ("ndcg@1", 0),
        # a[5:20] shares 5 characters with a span of 10, exactly half of the shorter: relevant.
        ("precision@3", 2 / 3),
        ("precision@10", 2 / 10),
        ("precision", 2 / 3),
        ("span_recall@2", 5 / 20),
        ("span_recall@3", 15 / 20),
        ("span_precision@3", 15 / 45),
        ("span_iou@3", 15 / (20 + 45 - 15)),
    ],
)
def test_two_items_three_passages(name: str, expected: float) -> None:
    """One example, all measures."""
    assert value(name, RANKED, TWO) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", [name for name in MEASURES if "omega" not in name])
def test_nothing_retrieved_is_zero(name: str) -> None:
    """An empty result counts, as 0."""
    assert value(name, [], TWO) == 0
    assert value(f"{name}@5", [], TWO) == 0


@pytest.mark.parametrize("name", [name for name in MEASURES if not name.startswith("chroma_precision")])
def test_exactly_the_evidence_is_one(name: str) -> None:
    """A ranking of the evidence itself, nothing else."""
    assert value(name, [("a", 0, 10), ("a", 30, 40)], TWO) == 1


def test_found_is_by_the_union_of_chunks() -> None:
    """Three chunks hold 20 % of an item each: at rank 3 the union has 60 % and the item is found."""
    items = spans(("a", 0, 100))
    pieces = [("a", 0, 20), ("a", 40, 60), ("a", 80, 120)]
    assert value("recall@2", pieces, items) == 0
    assert value("recall@3", pieces, items) == 1
    assert value("mrr", pieces, items) == 1 / 3


def test_overlapping_chunks_count_characters_once() -> None:
    """a[0:30] twice is still 30 characters of 100."""
    items = spans(("a", 0, 100))
    assert value("recall@2", [("a", 0, 30), ("a", 0, 30)], items) == 0
    assert value("span_recall@2", [("a", 0, 30), ("a", 0, 30)], items) == 0.3
    assert value("span_precision@2", [("a", 0, 30), ("a", 10, 40)], items) == 1


def test_touching_is_not_containing() -> None:
    """A chunk that ends where a span begins shares nothing with it."""
    assert value("precision@1", [("a", 10, 30)], TWO) == 0
    assert value("span_recall@1", [("a", 10, 30)], TWO) == 0
    assert value("hit@1", [("a", 10, 30)], TWO) == 0


def test_coverage_decides_what_is_found() -> None:
    """Half the span suffices at 0.5, not at 0.51."""
    assert value("recall", [("a", 0, 5)], spans(("a", 0, 10), coverage=0.5)) == 1
    assert value("recall", [("a", 0, 5)], spans(("a", 0, 10), coverage=0.51)) == 0


def test_equivalent_places_are_one_item() -> None:
    """Either copy finds the item; halves of two different copies do not add up."""
    items = spans([("a", 0, 10), ("c", 50, 60)])
    assert value("recall", [("c", 50, 60)], items) == 1
    assert value("span_recall", [("c", 50, 60)], items) == 1
    assert value("recall", [("a", 0, 4), ("c", 56, 60)], items) == 0
    # The second copy is redundant: it is no new gold, but the chunk is relevant.
    assert value("span_precision", [("a", 0, 10), ("c", 50, 60)], items) == 0.5
    assert value("precision@2", [("a", 0, 10), ("c", 50, 60)], items) == 1


def test_a_chunk_that_finds_two_items_at_once_never_scores_above_one() -> None:
    """Both items in one chunk at rank 1: every measure of rank is 1; at rank 2, map is 1/2."""
    both = [("a", 0, 40)]
    assert [value(name, both, TWO) for name in ("ndcg@5", "map", "mrr", "recall@1")] == [1, 1, 1, 1]
    later = [("b", 0, 9), ("a", 0, 40)]
    assert value("map", later, TWO) == 1 / 2
    assert value("ndcg@5", later, TWO) == pytest.approx(2 / math.log2(3) / (1 + 1 / math.log2(3)))


def test_documents_stand_at_the_rank_of_their_best_chunk() -> None:
    """Three chunks of x are one document: y, at chunk rank 4, has document rank 2."""
    ranked = [("x", 0, 5), ("x", 5, 9), ("x", 2, 7), ("y", 0, 5)]
    items = documents(y=1)
    assert value("mrr", ranked, items) == 1 / 2
    assert value("precision@2", ranked, items) == 1 / 2
    assert value("recall@2", ranked, items) == 1


def test_grades_are_linear_gains() -> None:
    """Grade 3 at rank 2 and grade 1 at rank 1, against the ideal order."""
    got = value("ndcg@2", [("low", 0, 5), ("high", 0, 5)], documents(high=3, low=1))
    assert got == pytest.approx((1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3)))


MAPS = {"a": TokenMap(np.arange(0, 100, 5)), "b": TokenMap(np.arange(0, 100, 5))}  # a token every five characters


def budgeted(tokens: int, passages: list[Passage], items: Items) -> Ranking:
    return Ranking(passages, items).within(tokens, MAPS, passages)


def test_a_token_budget_cuts_the_last_chunk_to_fit() -> None:
    """Two tokens of b are paid first; of a[0:20] (4 tokens) the budget of 4 leaves 2: a[0:10]."""
    passages = [Passage("b", 0, 10, 2), Passage("a", 0, 20, 4)]
    assert [(p.doc, p.start, p.end) for p in budgeted(4, passages, TWO).passages] == [("b", 0, 10), ("a", 0, 10)]
    assert budgeted(4, passages, TWO).found == [2, None]
    assert budgeted(3, passages, TWO).found == [2, None]  # a[0:5] is half of the first item
    assert budgeted(2, passages, TWO).found == [None, None]


def test_context_is_paid_before_text() -> None:
    """Three tokens of context leave one of four for the text."""
    passages = [Passage("a", 0, 20, 4, context_tokens=3)]
    assert [p.end for p in budgeted(4, passages, TWO).passages] == [5]
    assert budgeted(3, passages, TWO).passages == []


def test_every_chunk_shown_is_paid_for() -> None:
    """Chunks of a document already found still spend the budget."""
    items = documents(x=1, y=1)
    passages = [Passage("x", 0, 20, 4), Passage("x", 20, 40, 4), Passage("y", 0, 20, 4)]
    maps = {"x": MAPS["a"], "y": MAPS["a"]}
    assert Ranking(passages, items).within(8, maps, passages).found == [1, None]
    assert Ranking(passages, items).within(9, maps, passages).found == [1, 2]


@pytest.mark.parametrize("name", ["recal@5", "recall@", "recall@0", "recall@5x", "precision_omega@5", "Recall@5"])
def test_unknown_names_are_refused(name: str) -> None:
    """With one clear line."""
    with pytest.raises(ConfigError, match="metric"):
        parse_metric(name)


@pytest.mark.parametrize("name", ["recall@5", "recall@1000t", "mrr", "chroma_precision_omega"])
def test_names_round_trip(name: str) -> None:
    """`str` gives back what was parsed."""
    assert str(parse_metric(name)) == name
