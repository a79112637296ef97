"""Each selector on hand-computed examples."""

import numpy as np

from harness.components.selectors import Dedup, Threshold, TokenBudget, TopK
from harness.core.records import Chunk, Document, Hit, Outcome, Query, TokenMap

MAP = TokenMap(np.arange(0, 1000, 2))  # a token every two characters

DOC = Document("d", "x" * 3000, tokens=MAP)


def hit(start: int, tokens: int, score: float, text: str = "") -> Hit:
    return Hit(
        Chunk(
            "d",
            start,
            start + 2 * tokens,
            text or "x" * 2 * tokens,
            tokens=tokens,
            document=Document("d", "x" * 3000, tokens=MAP),
        ),
        score,
    )


HITS = [hit(0, 5, 0.9), hit(100, 8, 0.7), hit(200, 3, 0.7), hit(300, 2, 0.1)]


def starts(outcome: Outcome) -> tuple[list[int], list[int]]:
    return [h.chunk.start for h in outcome.kept], [d.hit.chunk.start for d in outcome.dropped]


def test_top_k() -> None:
    """Fewer hits than k are all kept."""
    assert starts(TopK(3).select(Query("q", "?"), HITS)) == ([0, 100, 200], [300])
    assert starts(TopK(9).select(Query("q", "?"), HITS))[1] == []


def test_threshold_keeps_equality_and_may_keep_nothing() -> None:
    """A score of 0.7 passes a threshold of 0.7."""
    assert starts(Threshold(0.7).select(Query("q", "?"), HITS)) == ([0, 100, 200], [300])
    assert starts(Threshold(1).select(Query("q", "?"), HITS))[0] == []


def test_budget_overflow() -> None:
    """The first hit takes 5 of 9 tokens. stop: no more hits; skip: 3 fit, then 2 do not; cut: 4 of 8."""
    assert starts(TokenBudget(9, "stop").select(Query("q", "?"), HITS)) == ([0], [100, 200, 300])
    assert starts(TokenBudget(9, "skip").select(Query("q", "?"), HITS)) == ([0, 200], [100, 300])
    cut = TokenBudget(9, "cut").select(Query("q", "?"), HITS)
    assert starts(cut) == ([0, 100], [200, 300])
    assert (cut.kept[1].chunk.tokens, cut.kept[1].chunk.end, len(cut.kept[1].chunk.text)) == (4, 108, 8)


def test_dedup_keeps_the_better_of_near_duplicates() -> None:
    """Words of at least three letters, ignoring case: the second equals the first; the third shares half."""
    texts = ["Whisk the eggs well", "WHISK THE EGGS well, so", "whisk the cream now"]
    hits = [hit(100 * n, 5, 1 - n / 10, text) for n, text in enumerate(texts)]
    outcome = Dedup(0.9).select(Query("q", "?"), hits)
    assert starts(outcome) == ([0, 200], [100])
    assert "d:0-10" in outcome.dropped[0].reason


def test_dedup_of_texts_without_words() -> None:
    """There is no division by zero; only equal texts are duplicates."""
    hits = [hit(0, 1, 0.3, "a b"), hit(10, 1, 0.2, "c"), hit(20, 1, 0.1, "a b")]
    assert starts(Dedup().select(Query("q", "?"), hits)) == ([0, 10], [20])
