"""Reranker scores in SQLite: one per query and text."""

from pathlib import Path

from harness.storage.model_outputs import ScoreCache, Scored


def test_scores_are_stored_by_query_and_text(tmp_path: Path) -> None:
    """Query and text are not interchangeable, rerankers are separate, and the first score of a pair is kept."""
    cache = ScoreCache(tmp_path / "s.sqlite")
    pairs = [("a", "b"), ("b", "a"), ("ab", ""), ("", "ab"), ("a", "bc"), ("ab", "c")]
    cache.put("s", {pair: Scored(at / 4, float(at)) for at, pair in enumerate(pairs)})
    cache.put("s", {("a", "b"): Scored(9.0, 9.0)})
    found = ScoreCache(tmp_path / "s.sqlite").get("s", [*pairs, ("x", "y")])
    assert found == {pair: Scored(at / 4, float(at), 0.0) for at, pair in enumerate(pairs)}
    assert cache.get("other", pairs) == {}
