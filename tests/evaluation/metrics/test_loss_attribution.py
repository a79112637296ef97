"""Loss attribution: the first cause of each loss."""

from dataclasses import replace

from harness.core.records import Evidence, Span
from harness.evaluation.metrics import EvidencePath, Items, Step, losses
from harness.evaluation.metrics.matching import Passage

ITEMS = Items((Evidence((Span("a", 0, 100),)), Evidence((Span("a", 200, 220),))), 0.5, False)
WHOLE, SECOND = Passage("a", 0, 120), Passage("a", 190, 230)


def evidence_outcomes(
    oracle: list[Passage], candidates: list[Passage], steps: list[Step], selected: list[Passage]
) -> list[str]:
    return losses(ITEMS, selected, lambda: EvidencePath(oracle, candidates, steps))


def test_found() -> None:
    """No item is lost."""
    assert evidence_outcomes([WHOLE, SECOND], [WHOLE, SECOND], [], [WHOLE, SECOND]) == ["found", "found"]


def test_split_apart_by_the_chunker() -> None:
    """No chunk covers half of the first item, and not enough chunks were selected."""
    thirds = [Passage("a", start, start + 34) for start in (0, 34, 68)]
    assert evidence_outcomes([*thirds, SECOND], [thirds[0], SECOND], [], [thirds[0], SECOND]) == ["split", "found"]


def test_a_split_item_whose_pieces_are_selected_is_found() -> None:
    """A split counts as a loss only if the item is not found."""
    thirds = [Passage("a", start, start + 34) for start in (0, 34, 68)]
    assert evidence_outcomes([*thirds, SECOND], [*thirds, SECOND], [], [*thirds, SECOND]) == ["found", "found"]


def test_not_retrieved() -> None:
    """A chunk covers the item, but it is not among the candidates."""
    assert evidence_outcomes([WHOLE, SECOND], [SECOND], [], [SECOND]) == ["not_retrieved", "found"]


def test_the_first_step_that_drops_the_item_is_named() -> None:
    """A later step is not named; a budget has its own outcome."""
    steps = [Step("top_k", False, [WHOLE]), Step("token_budget", True, [SECOND])]
    assert evidence_outcomes([WHOLE, SECOND], [WHOLE, SECOND], steps, []) == ["dropped:top_k", "over_budget"]


def test_cut_by_a_budget() -> None:
    """Every step keeps the chunk, but one cuts it to its beginning."""
    steps = [Step("token_budget", True, [])]
    assert evidence_outcomes([WHOLE, SECOND], [WHOLE, SECOND], steps, [Passage("a", 0, 40), SECOND]) == [
        "over_budget",
        "found",
    ]


def test_a_piece_cut_first_and_dropped_later() -> None:
    """The part cut off is lost to the budget, the rest to the step that dropped the piece."""
    inside = Items((Evidence((Span("a", 0, 30),)), Evidence((Span("a", 80, 100),))), 0.5, False)
    whole, piece = Passage("a", 0, 120), Passage("a", 0, 40)
    steps = [Step("token_budget", True, []), Step("top_k", False, [piece])]
    assert losses(inside, [], lambda: EvidencePath([whole], [whole], steps)) == [
        "dropped:top_k",
        "over_budget",
    ]


def test_nested_candidates_are_dropped_one_by_one() -> None:
    """Dropping a passage does not drop a part that was kept; dropping a merged passage drops its parts."""
    items = Items((Evidence((Span("a", 0, 30),)),), 0.5, False)
    whole, part, other = Passage("a", 0, 93), Passage("a", 0, 30), Passage("a", 30, 60)
    steps = [Step("small", False, [whole]), Step("top_k", False, [part])]
    assert losses(items, [], lambda: EvidencePath([part], [whole, part], steps)) == ["dropped:top_k"]
    merged = [Step("merge", False, []), Step("top_k", False, [Passage("a", 0, 60)])]
    assert losses(items, [], lambda: EvidencePath([part], [part, other], merged)) == ["dropped:top_k"]


LATE = Items((Evidence((Span("a", 500, 600),)),), 0.5, False)


def test_a_chunk_with_the_same_start_is_not_a_cut() -> None:
    """Scales: fine 0-100 and coarse 0-1000 begin together; the budget drops nothing, top_k both."""
    fine, coarse = Passage("a", 0, 100), Passage("a", 0, 1000)
    steps = [Step("token_budget", True, []), Step("top_k", False, [coarse, fine])]
    assert losses(LATE, [], lambda: EvidencePath([coarse], [coarse, fine], steps)) == ["dropped:top_k"]


def test_merged_then_cut_then_dropped() -> None:
    """0-100 and 100-200 become one, which is cut to 0-150: evidence before 150 was dropped, the rest cut off."""
    parts, cut = [Passage("a", 0, 100), Passage("a", 100, 200)], Passage("a", 0, 150)
    steps = [Step("merge_adjacent", False, []), Step("token_budget", True, []), Step("top_k", False, [cut])]
    for span, outcome in ((Span("a", 110, 140), "dropped:top_k"), (Span("a", 160, 200), "over_budget")):
        item = Items((Evidence((span,)),), 0.5, False)
        assert losses(item, [], lambda: EvidencePath(parts, parts, steps)) == [outcome]


def test_the_trace_is_not_computed_if_everything_is_found() -> None:
    """Since the trace is costly."""

    def trace() -> EvidencePath:
        raise AssertionError

    assert losses(ITEMS, [WHOLE, SECOND], trace) == ["found", "found"]


def test_an_item_that_no_step_dropped_was_cut() -> None:
    """The candidates cover the entire item, the selection only its beginning."""
    assert evidence_outcomes([WHOLE, SECOND], [WHOLE, SECOND], [], [Passage("a", 0, 40), SECOND]) == [
        "over_budget",
        "found",
    ]


def test_evidence_in_missing_documents() -> None:
    """It is absent from the corpus, with any chunks, unless it is found."""
    items = Items(tuple(replace(item, absent=True) for item in ITEMS.evidence), 0.5, False)
    found = losses(items, [SECOND], lambda: EvidencePath([WHOLE, SECOND], [WHOLE, SECOND], []))
    assert found == ["not_in_the_corpus", "found"]


def test_a_kept_part_of_a_merged_passage_is_not_dropped_with_it() -> None:
    """0-100 and 100-200 become one, which is dropped; 50-80 was a separate candidate, and is dropped later."""
    parts, own = [Passage("a", 0, 100), Passage("a", 100, 200)], Passage("a", 50, 80, 9)
    items = Items((Evidence((Span("a", 55, 75),)), Evidence((Span("a", 110, 140),))), 0.5, False)
    steps = [Step("top_k", False, [Passage("a", 0, 200)]), Step("mmr", False, [own._replace(tokens=7)])]
    found = losses(items, [], lambda: EvidencePath(parts, [*parts, own], steps))
    assert found == ["dropped:mmr", "dropped:top_k"]


def test_dropping_a_merged_passage_keeps_its_neighbours() -> None:
    """A passage that begins at its end, or at the same place in another document, was merged separately."""
    places = [("a", 0, 60), ("a", 60, 100), ("a", 100, 150), ("a", 150, 200), ("b", 0, 50), ("b", 50, 100)]
    parts = [Passage(*place) for place in places]
    items = Items(tuple(Evidence((Span(*place),)) for place in places), 0.5, False)
    steps = [
        Step("top_k", False, [Passage("a", 0, 100)]),
        Step("mmr", False, [Passage("a", 100, 200), Passage("b", 0, 100)]),
    ]
    found = losses(items, [], lambda: EvidencePath(parts, parts, steps))
    assert found == ["dropped:top_k"] * 2 + ["dropped:mmr"] * 4


def test_a_cut_leaves_other_chunks_with_the_same_start_uncut() -> None:
    """Scales again: the coarse 0-1000 is cut to 0-50, the fine 0-100 is unchanged until top_k."""
    coarse, fine = Passage("a", 0, 1000, 200), Passage("a", 0, 100, 20)
    item = Items((Evidence((Span("a", 60, 90),)),), 0.5, False)
    steps = [Step("token_budget", True, []), Step("top_k", False, [fine._replace(tokens=19)])]
    found = losses(item, [Passage("a", 0, 50)], lambda: EvidencePath([fine], [coarse, fine], steps))
    assert found == ["dropped:top_k"]


def test_dropping_a_candidate_keeps_the_others() -> None:
    """The coarse 0-100 is dropped; the fine 0-30 inside it is kept, merged with 30-60, and dropped as 0-60."""
    coarse, fine, other = Passage("a", 0, 100, 9), Passage("a", 0, 30, 3), Passage("a", 30, 60, 3)
    item = Items((Evidence((Span("a", 0, 30),)),), 0.5, False)
    steps = [Step("top_k", False, [coarse]), Step("mmr", False, [Passage("a", 0, 60, 6)])]
    found = losses(item, [], lambda: EvidencePath([fine], [coarse, fine, other], steps))
    assert found == ["dropped:mmr"]


def test_a_merged_chunk_ends_where_its_passage_ends() -> None:
    """Two chunks are merged and cut by a budget, and the result is dropped later: that drop is the cause.

    The chunk is compared with the passage it was merged into, not with an unchanged overlapping passage, and not with a
    passage of another document.
    """
    lost = Items((Evidence((Span("a", 11, 15),)), Evidence((Span("b", 0, 3),))), 0.5, False)
    kept, first, second = Passage("a", 0, 10), Passage("a", 5, 15), Passage("a", 15, 25)
    other = Passage("b", 0, 9)
    made, cut = Passage("a", 5, 20), Passage("b", 0, 3)
    steps = [Step("budget", True, []), Step("top_k", False, [made])]
    trace = EvidencePath([kept, first, second, other], [kept, first, second, other], steps)
    assert losses(lost, [cut, kept], lambda: trace) == ["dropped:top_k", "found"]
