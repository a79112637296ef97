"""All measures on examples calculated by hand."""

import math

import numpy as np
import pytest

from harness.core.errors import ConfigError
from harness.core.records import Evidence, Query, Span, TokenMap
from harness.evaluation.metrics import MEASURES, Items, Ranking, parse_metric, score_queries
from harness.evaluation.metrics.intervals import union
from harness.evaluation.metrics.matching import Passage
from harness.evaluation.metrics.names import is_metric


def spans(*places: tuple[str, int, int] | list[tuple[str, int, int]], coverage: float = 0.5) -> Items:
    """Items with span evidence; a list has the equivalent places of one item."""
    items = [place if isinstance(place, list) else [place] for place in places]
    return Items(tuple(Evidence(tuple(Span(*p) for p in item)) for item in items), coverage, False)


def documents(**grades: float) -> Items:
    return Items(tuple(Evidence((Span(doc, 0, 9),), grade, whole=True) for doc, grade in grades.items()), 0.5, True)


def value(name: str, passages: list[tuple[str, int, int]], items: Items) -> float:
    return parse_metric(name).value(Ranking([Passage(*p) for p in passages], items))


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


OF_SELECTION = [name for name, one in MEASURES.items() if one.oracle == "no" and one.cutoff != "level"]


@pytest.mark.parametrize("name", OF_SELECTION)
def test_nothing_retrieved_is_zero(name: str) -> None:
    """An empty result counts as 0."""
    assert value(name, [], TWO) == 0
    if MEASURES[name].cutoff == "optional":
        assert value(f"{name}@5", [], TWO) == 0


EXACT = [
    name
    for name, one in MEASURES.items()
    if not name.startswith("chroma_precision") and name not in ("rbp", "iprec") and one.evidence != "documents"
]


@pytest.mark.parametrize("name", [*EXACT, "iprec@0.5", "iprec@1.0"])
def test_exactly_the_evidence_is_one(name: str) -> None:
    """For a ranking of exactly the evidence."""
    assert value(name, [("a", 0, 10), ("a", 30, 40)], TWO) == 1


def test_rank_biased_precision_by_hand() -> None:
    """Relevant at ranks 1 and 3: .2 and .2 * .8^2; rank 3 is beyond the cutoff at 2."""
    ranked = [("a", 0, 10), ("b", 0, 10), ("a", 30, 40)]
    assert value("rbp", ranked, TWO) == pytest.approx(0.2 + 0.2 * 0.64)
    assert value("rbp@2", ranked, TWO) == pytest.approx(0.2)


def test_precision_at_recall_levels() -> None:
    """Items found at ranks 2 and 4: recall is 1/2 from rank 2 on; the precision is 1/2 at ranks 2 and 4."""
    ranked = [("b", 0, 10), ("a", 0, 10), ("b", 20, 30), ("a", 30, 40)]
    assert [value(f"iprec@{level}", ranked, TWO) for level in ("0.0", "0.5", "1.0")] == [0.5, 0.5, 0.5]
    assert value("11pt_avg", ranked, TWO) == pytest.approx(0.5)
    assert [value(f"iprec@{level}", ranked[:3], TWO) for level in ("0.5", "1.0")] == [0.5, 0.0]
    assert value("rprec", ranked, TWO) == 0.5  # one of two items in the top two
    assert value("f1@2", ranked, TWO) == 0.5  # precision 1/2, recall 1/2
    assert value("f1@3", ranked, TWO) == pytest.approx(2 * (1 / 3) * 0.5 / (1 / 3 + 0.5))


JUDGED = Items(documents(r=2, s=1).evidence, 0.5, True, irrelevant=frozenset({"n", "m"}))


def test_incomplete_judgments_by_hand() -> None:
    """n and m judged irrelevant, r and s relevant, u unknown; ranked u n r s."""
    ranked = [(doc, 0, 9) for doc in "unrs"]
    # One irrelevant document ranks above both relevant ones, of two that count.
    assert value("bpref", ranked, JUDGED) == 0.5
    assert value("judged@2", ranked, JUDGED) == 0.5
    assert value("judged@9", ranked, JUDGED) == 0.75
    first = (1 + 1 * 1e-5 / (1 + 2e-5)) / 3
    second = (1 + 2 * (1 + 1e-5) / (2 + 2e-5)) / 4
    assert value("infap", ranked, JUDGED) == pytest.approx((first + second) / 2)


def test_relevance_threshold() -> None:
    """With relevance from grade 2 on, s is judged but not relevant; its grade still adds to graded gain."""
    query = Query("q", "?", documents(r=2, s=1).evidence, irrelevant=("n",))
    strict = Items.of(query, relevant_from=2)
    ranked = [(doc, 0, 9) for doc in "sr"]
    assert [value(name, ranked, strict) for name in ("recall@1", "recall", "precision@2", "mrr")] == [0, 1, 0.5, 0.5]
    assert value("bpref", ranked, strict) == 0
    assert value("judged@1", ranked, strict) == 1
    plain = Items.of(query)
    assert value("ndcg", ranked, strict) == value("ndcg", ranked, plain) < 1
    assert value("recall@1", ranked, plain) == 0.5


def test_a_query_without_relevant_evidence_is_left_out_or_zero() -> None:
    """As set in the experiment; slight evidence has graded gain in either case."""
    slight = Items.of(Query("q", "?", documents(s=1).evidence), relevant_from=2)
    metrics = [parse_metric(name) for name in ("recall@5", "ndcg@5", "span_recall@5")]
    rows = [[Passage("s", 0, 9)], [Passage("r", 0, 9)]]
    items = [slight, documents(r=2)]
    skipped = score_queries(metrics, items, rows, {}, lambda *_: [])
    assert (np.isnan(skipped["recall@5"][0]), skipped["recall@5"][1]) == (True, 1)
    assert skipped["ndcg@5"].tolist() == [1, 1]
    zero = score_queries(metrics, items, rows, {}, lambda *_: [], unanswerable=0.0)
    assert zero["recall@5"].tolist() == [0, 1]
    assert np.isnan(zero["span_recall@5"]).all()


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("iprec", "iprec takes a recall level from 0 to 1: write iprec@0.1"),
        ("iprec@5", "iprec takes a recall level from 0 to 1: write iprec@0.1"),
        ("iprec@1.5", "iprec takes a recall level from 0 to 1"),
        ("recall@0.5", "write recall@5 for a rank"),
        ("bpref@5", "bpref takes no cutoff"),
        ("Rprec", "trec_eval's Rprec is rprec here"),
        ("P_5", "trec_eval's P_5 is precision@k here"),
        ("set_F", "trec_eval's set_F is f1 here"),
    ],
)
def test_invalid_names(name: str, what: str) -> None:
    """Each message says what to write instead."""
    with pytest.raises(ConfigError) as caught:
        parse_metric(name)
    assert what in str(caught.value)


def test_an_item_is_found_by_the_union_of_chunks() -> None:
    """Three chunks cover 20 % of an item each: at rank 3 the union covers 60 % and the item is found."""
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


def test_touching_is_not_overlapping() -> None:
    """A chunk that ends where a span begins does not overlap it."""
    assert value("precision@1", [("a", 10, 30)], TWO) == 0
    assert value("span_recall@1", [("a", 10, 30)], TWO) == 0
    assert value("hit@1", [("a", 10, 30)], TWO) == 0


def test_coverage_threshold() -> None:
    """Half the span is enough at 0.5, but not at 0.51."""
    assert value("recall", [("a", 0, 5)], spans(("a", 0, 10), coverage=0.5)) == 1
    assert value("recall", [("a", 0, 5)], spans(("a", 0, 10), coverage=0.51)) == 0


def test_equivalent_places_are_one_item() -> None:
    """Either copy finds the item; halves of two different copies do not add up."""
    items = spans([("a", 0, 10), ("c", 50, 60)])
    assert value("recall", [("c", 50, 60)], items) == 1
    assert value("span_recall", [("c", 50, 60)], items) == 1
    assert value("recall", [("a", 0, 4), ("c", 56, 60)], items) == 0
    # The second copy is redundant: it adds no gold characters, but the chunk is relevant.
    assert value("span_precision", [("a", 0, 10), ("c", 50, 60)], items) == 0.5
    assert value("precision@2", [("a", 0, 10), ("c", 50, 60)], items) == 1


def test_a_chunk_that_finds_two_items_at_once_never_scores_above_one() -> None:
    """Both items in one chunk at rank 1: every rank measure is 1; at rank 2, map is 1/2."""
    both = [("a", 0, 40)]
    assert [value(name, both, TWO) for name in ("ndcg@5", "map", "mrr", "recall@1")] == [1, 1, 1, 1]
    later = [("b", 0, 9), ("a", 0, 40)]
    assert value("map", later, TWO) == 1 / 2
    assert value("ndcg@5", later, TWO) == pytest.approx(2 / math.log2(3) / (1 + 1 / math.log2(3)))


def test_documents_have_the_rank_of_their_best_chunk() -> None:
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
    """b uses two tokens of the budget of 4, which leaves 2 for a[0:20] (4 tokens): a[0:10]."""
    passages = [Passage("b", 0, 10, 2), Passage("a", 0, 20, 4)]
    assert [(p.doc, p.start, p.end) for p in budgeted(4, passages, TWO).passages] == [("b", 0, 10), ("a", 0, 10)]
    assert budgeted(4, passages, TWO).found == [2, None]
    assert budgeted(3, passages, TWO).found == [2, None]  # a[0:5] is half of the first item
    assert budgeted(2, passages, TWO).found == [None, None]


def test_context_uses_the_budget_before_text() -> None:
    """Three tokens of context leave one of four tokens for the text."""
    passages = [Passage("a", 0, 20, 4, context_tokens=3)]
    assert [p.end for p in budgeted(4, passages, TWO).passages] == [5]
    assert budgeted(3, passages, TWO).passages == []


def test_every_chunk_shown_uses_the_budget() -> None:
    """Chunks of a document that is already found use it too."""
    items = documents(x=1, y=1)
    passages = [Passage("x", 0, 20, 4), Passage("x", 20, 40, 4), Passage("y", 0, 20, 4)]
    maps = {"x": MAPS["a"], "y": MAPS["a"]}
    assert Ranking(passages, items).within(8, maps, passages).found == [1, None]
    assert Ranking(passages, items).within(9, maps, passages).found == [1, 2]


@pytest.mark.parametrize("name", ["recal@5", "recall@", "recall@0", "recall@5x", "precision_omega@5", "Recall@5"])
def test_unknown_names_are_refused(name: str) -> None:
    """With a one-line message."""
    with pytest.raises(ConfigError, match="metric"):
        parse_metric(name)


@pytest.mark.parametrize("name", ["recall@5", "recall@1000t", "mrr", "chroma_precision_omega"])
def test_names_round_trip(name: str) -> None:
    """`str` of a parsed metric is its name."""
    assert str(parse_metric(name)) == name


def test_the_ideal_has_the_highest_grade_first() -> None:
    """In any order of listing; with a cutoff of 1 it has only one item. Grades of 0 have no gain."""
    items = documents(low=1, high=3)
    assert value("ndcg", [("high", 0, 9), ("low", 0, 9)], items) == 1
    assert value("ndcg@1", [("high", 0, 9)], items) == 1
    assert value("ndcg@1", [("low", 0, 9)], items) == pytest.approx(1 / 3)
    assert value("ndcg", [("none", 0, 9)], documents(none=0)) == 0


def test_map_with_distant_ranks() -> None:
    """Items found at ranks 1 and 8: the precision at the second is 2/8."""
    ranked = [("a", 0, 10), *[("b", 0, 10)] * 6, ("a", 30, 40)]
    assert value("map", ranked, TWO) == (1 + 2 / 8) / 2
    assert [value(f"iprec@{level}", ranked, TWO) for level in ("0.5", "1.0")] == [1, 2 / 8]


def test_rank_biased_precision_stops_at_the_cutoff() -> None:
    """Relevant at ranks 1 and 2: 0.2 and 0.2 * 0.8."""
    ranked = [("a", 0, 10), ("a", 30, 40)]
    assert [value(f"rbp@{k}", ranked, TWO) for k in (1, 2)] == [pytest.approx(0.2), pytest.approx(0.36)]


@pytest.mark.parametrize(
    ("relevant", "irrelevant", "ranked", "expected"),
    [
        ("r", "", "r", 1),
        ("r", "nm", "nmr", 0),
        ("rs", "n", "nrs", 0),
        ("rs", "nm", "nrs", 1 / 2),
        ("rs", "nm", "rnmos", 1 / 2),
        ("rs", "nm", "rxs", 1),
    ],
)
def test_bpref_by_hand(relevant: str, irrelevant: str, ranked: str, expected: float) -> None:
    """For each relevant document, the irrelevant ones above it, of at most as many as there are relevant ones."""
    items = documents(**dict.fromkeys(relevant, 1.0))._replace(irrelevant=frozenset(irrelevant))
    assert value("bpref", [(doc, 0, 9) for doc in ranked], items) == expected


def test_infap_by_hand() -> None:
    """Above r are x (not pooled), u (pooled but not judged) and n: 2 of 3 are pooled, 0 of 1 judged is relevant."""
    items = documents(r=1)._replace(irrelevant=frozenset("n"), unjudged=frozenset("u"))
    share = 1e-5 / (1 + 2e-5)
    found = value("infap", [(doc, 0, 9) for doc in "xunr"], items)
    assert found == pytest.approx((1 + 2 * share) / 4, abs=1e-9)
    # With one relevant document above, half of those judged are relevant: u counts half.
    items = documents(r=1, s=1)._replace(irrelevant=frozenset("n"), unjudged=frozenset("u"))
    found = value("infap", [(doc, 0, 9) for doc in "rnus"], items)
    assert found == pytest.approx((1 + (1 + 3 / 2) / 4) / 2, abs=1e-4)


def test_queries_of_every_kind_in_one_launch() -> None:
    """Documents, spans and no evidence: measures of the other kind are NaN; no evidence gives `unanswerable`."""
    nothing = Items((), 0.5, False)
    items = [nothing, documents(r=1)._replace(irrelevant=frozenset("n")), spans(("a", 0, 10))]
    rows = [[Passage("a", 0, 20, 4)], [Passage("r", 0, 9, 2)], [Passage("b", 0, 20, 4), Passage("a", 0, 20, 4)]]
    names = ["span_recall", "bpref", "recall", "precision_omega", "recall@4t", "recall@5t"]

    def scored(chosen: list[int]) -> dict[str, list[float]]:
        metrics = [parse_metric(name) for name in names]
        given = [items[at] for at in chosen], [rows[at] for at in chosen]
        found = score_queries(metrics, *given, MAPS, lambda *_: [Passage("a", 5, 15)], unanswerable=0.0)
        return {name: [-1 if math.isnan(value) else value for value in values] for name, values in found.items()}

    assert scored([0, 1, 2]) == {
        "span_recall": [0, -1, 1],
        "bpref": [0, 1, -1],
        "recall": [0, 1, 1],
        "precision_omega": [0, -1, 0.5],
        "recall@4t": [0, 1, 0],
        "recall@5t": [0, 1, 1],
    }
    assert (scored([0, 1])["span_recall"], scored([0, 1])["bpref"]) == ([-1, -1], [0, 1])
    assert (scored([0, 2])["span_recall"], scored([0, 2])["bpref"]) == ([0, 1], [-1, -1])


def test_the_chroma_measures_use_the_first_place_and_cutoffs() -> None:
    """A copy does not count; of two chunks with half of the span each, the first one covers half."""
    copies = spans([("a", 0, 10), ("c", 50, 60)])
    assert [value("chroma_recall", [chunk], copies) for chunk in (("a", 0, 10), ("c", 50, 60))] == [1, 0]
    halves = [("a", 0, 5), ("a", 5, 10)]
    assert [value(f"chroma_recall@{k}", halves, copies) for k in (1, 2)] == [0.5, 1]
    # Five gold characters are in a chunk of ten, five are in no chunk.
    assert value("chroma_precision_omega", [("a", 5, 15)], copies) == pytest.approx(5 / (10 + 5))
    assert value("chroma_precision_omega", [], copies) == 0


def test_no_evidence_at_all_has_no_gain() -> None:
    """Without even slight evidence, ndcg has the default value of a query without evidence: none."""
    nothing = Items((), 0.5, True)
    assert np.isnan(score_queries([parse_metric("ndcg")], [nothing], [[]], {}, lambda *_: [])["ndcg"][0])


def test_is_metric() -> None:
    """Other facts of a trial are not metrics."""
    assert [is_metric(name) for name in ("recall@5", "mrr", "index_bytes")] == [True, True, False]


def test_nothing_is_shown_after_a_passage_that_did_not_fit() -> None:
    """Not after a chunk that was cut, and not after one whose context alone exceeds the budget."""
    after = Passage("b", 0, 5, 1)
    assert [p.end for p in budgeted(3, [Passage("a", 0, 20, 4), after], TWO).passages] == [15]
    assert budgeted(3, [Passage("a", 0, 20, 4, context_tokens=3), after], TWO).passages == []


def test_unions_by_hand() -> None:
    """Adjacent intervals are joined, empty ones dropped."""
    assert union([(2, 3), (0, 2)]) == [(0, 3)]
    assert union([(4, 4)]) == []
    assert union([(0, 5), (1, 2), (7, 8)]) == [(0, 5), (7, 8)]


def test_judged_does_not_depend_on_relevance() -> None:
    """A query with only an irrelevant document has a value of `judged`, independent of its other measures."""
    only = Items.of(Query("q", "?", irrelevant=("n",)))
    metrics = [parse_metric(name) for name in ("judged@2", "recall@2", "ndcg@2")]
    rows = [[Passage("n", 0, 5), Passage("n", 5, 9), Passage("u", 0, 9)]]
    for unanswerable in (0.0, math.nan):
        found = score_queries(metrics, [only], rows, {}, lambda *_: [], unanswerable=unanswerable)
        assert found["judged@2"].tolist() == [0.5]
        np.testing.assert_equal([found["recall@2"][0], found["ndcg@2"][0]], [unanswerable] * 2)
