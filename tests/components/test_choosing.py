"""Selectors that choose how many hits to keep and which, on hand-computed examples."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from harness import Experiment, Trial, plan, run
from harness.components.chunkers import Fixed
from harness.components.embedders import Hashing
from harness.components.retrievers import BM25
from harness.components.selectors import (
    MMR,
    Adaptive,
    ConfidenceK,
    Dedup,
    Diversify,
    Elbow,
    MergeAdjacent,
    MetadataBoost,
    MultiSignal,
    Normalize,
    QueryAdaptive,
    TaskK,
    TokenBudget,
    TopK,
)
from harness.components.selectors.multi_signal import keyword_shares
from harness.components.selectors.wording import mentions
from harness.core.errors import ConfigError
from harness.core.records import Chunk, Document, Hit, Outcome, Query, TokenMap
from harness.core.tokenizer import Tokenizer
from harness.running.stages.selection_run import _check

ASKED = Query("q", "?")


def scored(*scores: float) -> list[Hit]:
    return [Hit(Chunk("d", 10 * at, 10 * at + 5, f"text {at}"), score) for at, score in enumerate(scores)]


def kept(outcome: Outcome) -> list[int]:
    return [hit.chunk.start // 10 for hit in outcome.kept]


def scores_of(outcome: Outcome) -> list[float]:
    return [hit.score for hit in outcome.kept]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("min_max", [1.0, 0.25, 0.0, 0.25]),
        ("rank", [1.0, 0.75, 0.25, 0.75]),
        ("z_score", [2.5 / 1.5, -0.5 / 1.5, -1.0, -0.5 / 1.5]),
    ],
)
def test_normalize(method: Any, expected: list[float]) -> None:
    """For 4, 1, 0, 1 the mean is 1.5, the standard deviation sqrt(2.25), and the ranks are 1, 2, 4, 2."""
    outcome = Normalize(method).select(ASKED, scored(4, 1, 0, 1))
    assert scores_of(outcome) == pytest.approx(expected)
    assert kept(outcome) == [0, 1, 2, 3]


def test_normalize_of_equal_scores() -> None:
    """All 1 with min-max and rank, all 0 with z-score; negative scores, too."""
    for method, value in (("min_max", 1.0), ("rank", 1.0), ("z_score", 0.0)):
        assert scores_of(Normalize(method).select(ASKED, scored(-2, -2))) == [value, value]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scores", "count"),
    [
        ([0.92, 0.88, 0.75, 0.45], 3),  # the source's own example: 0.45 is below 0.7
        ([0.95, 0.74, 0.73], 3),  # 0.74 is below 0.8 x 0.95, but min_k is 2; 0.73 is not below 0.8 x 0.74
        ([0.95, 0.9, 0.71, 0.7], 2),  # 0.71 < 0.8 x 0.9 = 0.72
        ([0.9, 0.9, 0.72, 0.7], 4),  # exactly 0.8 x 0.9 is not a sharp drop
        ([0.3, 0.2, 0.1], 2),  # min_k, though no score is good
        ([0.9] * 12, 10),
        ([], 0),
    ],
)
def test_adaptive(scores: list[float], count: int) -> None:
    """min_k 2, max_k 10, threshold 0.7, score_drop_ratio 0.8."""
    assert len(Adaptive().select(ASKED, scored(*scores)).kept) == count


def test_adaptive_gives_the_reason() -> None:
    """The hit that ends the ranking gives the reason for all dropped hits."""
    outcome = Adaptive().select(ASKED, scored(0.9, 0.85, 0.6, 0.5))
    assert [drop.reason for drop in outcome.dropped] == ["score 0.6 < 0.7"] * 2
    assert Adaptive(threshold=0.1).select(ASKED, scored(0.9, 0.85, 0.6)).dropped[0].reason.startswith("score 0.6 < 0.8")


def test_no_ratio_after_a_score_of_zero() -> None:
    """After a cosine of 0 or less no ratio is defined: the ranking ends after `min_k` hits."""
    assert kept(Adaptive(1, 9, -1).select(ASKED, scored(0.2, 0.17, 0.0, 0.0))) == [0, 1]
    assert kept(Adaptive(0, 9, -1).select(ASKED, scored(-0.1, -0.1))) == [0]


@pytest.mark.parametrize(
    ("text", "name", "count"),
    [
        ("Who wrote it?", "factual", 2),
        ("When was it?", "factual", 2),
        ("Whenever it rains, the bread is damp", "balanced", 3),
        ("What is the oven like in the old mill by the river at night?", "balanced", 3),  # ten words or more
        ("Please describe the oven", "exploratory", 5),
        ("Salt in bread", "balanced", 3),
    ],
)
def test_query_adaptive(text: str, name: str, count: int) -> None:
    """Only whole words match. All scores are below the thresholds, so each class keeps its `min_k`."""
    step = QueryAdaptive()
    assert step.query_class(text) == name
    outcome = step.select(Query("q", text), scored(*[0.1] * 20))
    assert len(outcome.kept) == count
    assert outcome.dropped[0].reason.startswith(name)


@pytest.mark.parametrize(
    ("text", "metadata", "k"),
    [
        ("What is Next.js?", {}, 3),  # qa 5 x 0.6
        ("useEffect cleanup function example", {}, 3),  # code 5 x 0.6
        ("How do I deploy a Next.js app with Redis caching and PostgreSQL to Vercel?", {}, 9),  # qa 5 x 1.8
        ("What do I understand of classification?", {}, 3),  # neither `and` nor `class`
        ("one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen", {}, 5),
        ("Sum it up", {"task": "summarization"}, 9),  # 15 x 0.6
        ("Sum it up", {"task": "reasoning", "complexity": "complex"}, 54),
        ("Sum it up", {"task": "poetry", "complexity": "moderate"}, 10),
    ],
)
def test_task_k(text: str, metadata: dict[str, str], k: int) -> None:
    """Base by task, factor by complexity, both from the metadata if set there."""
    assert TaskK().hits_for(Query("q", text, metadata=metadata))[0] == k


def test_mentions_whole_words_and_phrases() -> None:
    """Across line breaks, next to punctuation, in upper or lower case."""
    assert mentions("Tell me: WHO?", ["who"])
    assert mentions("how\n many", ["how many"])
    assert not mentions("whose", ["who"])


def test_confidence_k() -> None:
    """With a range of 0.9 to 0.1, the gap of 0.9 and 0.5 is half of it, that of 0.9 and 0.8 an eighth."""
    step = ConfidenceK(1, 3, 0.5)
    assert step.confidence(scored(0.9, 0.5, 0.1)) == pytest.approx(0.5)
    assert kept(step.select(ASKED, scored(0.9, 0.5, 0.1))) == [0]
    assert kept(step.select(ASKED, scored(0.9, 0.8, 0.1, 0.0))) == [0, 1, 2]
    assert step.confidence(scored(0.4, 0.4)) == 0
    assert step.confidence(scored(0.4)) == 1
    # The same for any scale and offset: BM25, cosines, negative scores.
    assert step.confidence(scored(-1, -5, -9)) == pytest.approx(0.5)


def test_elbow() -> None:
    """The first drop over 0.1 at rank `min_k` or later; an earlier drop does not count, nor one of exactly 0.1."""
    assert kept(Elbow(0.1, 2).select(ASKED, scored(0.9, 0.5, 0.48, 0.3, 0.1))) == [0, 1, 2]
    assert kept(Elbow(0.1, 3).select(ASKED, scored(0.9, 0.2))) == [0, 1]
    assert kept(Elbow(0.1, 1, 4, "max_k").select(ASKED, scored(0.9, 0.8, 0.7, 0.6, 0.5))) == [0, 1, 2, 3]
    assert kept(Elbow(0.1, 1, 4).select(ASKED, scored(0.9, 0.8, 0.7, 0.6, 0.5))) == [0]


def pointing(*hits: tuple[float, tuple[float, float]]) -> list[Hit]:
    return [
        Hit(Chunk("d", 10 * at, 10 * at + 5, f"text {at}", vector=np.array(vector, np.float32)), score)
        for at, (score, vector) in enumerate(hits)
    ]


def test_mmr_by_hand() -> None:
    """After the first choice, its duplicate scores 0.7 x 0.89 - 0.3 x 1 = 0.323, the other 0.7 x 0.5 - 0 = 0.35."""
    hits = pointing((0.9, (1, 0)), (0.89, (1, 0)), (0.5, (0, 1)))
    outcome = MMR(2, 0.7, None).select(ASKED, hits)
    assert kept(outcome) == [0, 2]
    assert outcome.dropped[0].reason == "cosine 1.00 to a chosen hit"
    assert kept(MMR(2, 0.8, None).select(ASKED, hits)) == [0, 1]  # 0.712 - 0.2 = 0.512 over 0.4
    assert kept(MMR(1, 0.7, 2).select(ASKED, hits)) == [0]


@given(seed=st.integers(0, 10_000), n=st.integers(1, 14), k=st.integers(1, 14), relevance=st.floats(0, 1))
@settings(max_examples=150, deadline=None)
def test_mmr_matches_langchain(seed: int, n: int, k: int, relevance: float) -> None:
    """The same choice in the same order, if the scores are the cosines to the query."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, 6))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    query = rng.normal(size=6)
    query /= np.linalg.norm(query)
    cosines = vectors @ query
    hits = [Hit(Chunk("d", 10 * at, 10 * at + 5, "t", vector=vectors[at]), float(cosines[at])) for at in range(n)]
    chosen = kept(MMR(k, relevance, None).select(ASKED, hits))
    reference = [int(at) for at in maximal_marginal_relevance(query, list(vectors), relevance, k)]
    # The harness rounds cosines to five decimals; where that changes the choice, both choices are equally good.
    assert chosen == reference or worth(chosen, vectors, cosines, relevance) == pytest.approx(
        worth(reference, vectors, cosines, relevance), abs=2e-5
    )


def worth(order: list[int], vectors: Any, cosines: Any, relevance: float) -> list[float]:
    return [
        relevance * cosines[at]
        - (1 - relevance) * (max(vectors[at] @ vectors[other] for other in order[:place]) if place else 0)
        for place, at in enumerate(order)
    ]


def test_dedup_by_vectors() -> None:
    """A cosine of 0.8 is below 0.9 and not below 0.8."""
    hits = pointing((0.9, (1, 0)), (0.8, (0.8, 0.6)), (0.7, (0, 1)))
    assert kept(Dedup(0.9, "vectors").select(ASKED, hits)) == [0, 1, 2]
    assert kept(Dedup(0.8, "vectors").select(ASKED, hits)) == [0, 2]


def test_diversify() -> None:
    """At most two hits per document, each with a diversity of at least 0.3 from every kept hit."""
    texts = ["knead the dough", "bake the loaf", "cool the rack", "knead the dough well"]
    hits = [Hit(Chunk("ab"[at // 3], at, at + 1, text), 1 - at / 10) for at, text in enumerate(texts)]
    outcome = Diversify(2, 0.3).select(ASKED, hits)
    assert [hit.chunk.start for hit in outcome.kept] == [0, 1]
    assert [drop.reason for drop in outcome.dropped] == ["2 of a already", "diversity 0.25 from a:0-1"]
    assert len(Diversify(None, 0.25).select(ASKED, hits).kept) == 4  # 3 of 4 words: a diversity of exactly 0.25


def dated(score: float, **metadata: Any) -> Hit:
    at = round(score * 100)
    return Hit(Chunk("d", at, at + 1, "x", document=Document("d", "", metadata=metadata)), score)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, 0.5),
        ({"date": "2026-01-02"}, 0.55),  # 29 days
        ({"date": "2026-01-01"}, 0.52),  # 30 days
        ({"date": "2025-11-03T08:00:00"}, 0.52),  # 89 days
        ({"date": "2025-11-02"}, 0.5),
        ({"date": "2026-03-01"}, 0.55),  # later than now: the most recent
        ({"source_type": "official"}, 0.53),
        ({"category": "bread"}, 0.55),
        ({"date": "2026-01-30", "source_type": "official", "category": "bread"}, 0.63),
    ],
)
def test_metadata_boost(metadata: dict[str, str], expected: float) -> None:
    """Ages are relative to January 31."""
    query = Query("q", "?", metadata={"category": "bread"})
    outcome = MetadataBoost(now="2026-01-31").select(query, [dated(0.5, **metadata)])
    assert scores_of(outcome) == pytest.approx([expected])


def test_boosts_are_capped_and_change_the_ranking() -> None:
    """0.96 plus all boosts is 1; a boosted 0.55 moves ahead of 0.56."""
    step = MetadataBoost(now="2026-01-31")
    hits = [dated(0.96, date="2026-01-30", source_type="official"), dated(0.56), dated(0.55, source_type="official")]
    assert scores_of(step.select(ASKED, hits)) == pytest.approx([1.0, 0.58, 0.56])


def test_an_invalid_date() -> None:
    """The error names the document; an invalid `now` is rejected at once."""
    with pytest.raises(ConfigError, match=r"document 'd': metadata.date must be a date such as 2026-01-31, got 'soon'"):
        MetadataBoost(now="2026-01-31").select(ASKED, [dated(0.5, date="soon")])
    assert MetadataBoost(now="today").problem() == "now: expected a date such as 2026-01-31, got 'today'"


def test_keyword_shares() -> None:
    """With two texts, `rye` in one and `bread` in both have idf ln 2 and ln 1.2; `salt` in none has ln 6."""
    rye, bread, salt = np.log1p(1.5 / 1.5), np.log1p(0.5 / 2.5), np.log1p(2.5 / 0.5)
    shares = keyword_shares("rye bread, salted", ["Rye breads", "A bread"])
    assert shares == pytest.approx([(rye + bread) / (rye + bread + salt), bread / (rye + bread + salt)])


def test_multi_signal() -> None:
    """Each signal is scaled over both hits: the first wins by score, the second by date and authority: 0.7 and 0.3."""
    old = Hit(Chunk("a", 0, 1, "x", document=Document("a", "")), 0.9)
    new = Hit(
        Chunk("b", 0, 1, "y", document=Document("b", "", metadata={"date": "2026-01-31", "source_type": "official"})),
        0.1,
    )
    outcome = MultiSignal(now="2026-01-31").select(Query("q", "z"), [old, new])
    # Neither hit has the word: equal keyword signals scale to 1.
    assert {hit.chunk.doc: hit.score for hit in outcome.kept} == pytest.approx({"a": 0.5 + 0.2, "b": 0.2 + 0.15 + 0.15})


def test_weights_have_names() -> None:
    """An unknown weight is rejected, and so are weights that are all 0."""
    from harness.experiment.catalog import checked

    with pytest.raises(ConfigError, match="multi_signal has no setting 'novelty'"):
        checked(MultiSignal, {"now": "2026-01-31", "novelty": 1}, where="x")
    weights = dict.fromkeys(("semantic", "keyword", "recency", "authority"), 0)
    with pytest.raises(ConfigError, match="all weights are 0"):
        checked(MultiSignal, {"now": "2026-01-31", **weights}, where="x")


TEXT = "One two. Three four.\n\nFive six. Seven eight."
DOC = Document("d", TEXT, tokens=TokenMap(np.array([match.start() for match in re.finditer(r"\S+", TEXT)])))


def piece(words: str, score: float, context: str = "") -> Hit:
    start = TEXT.index(words)
    own = len(words.split())
    extra = 2 if context else 0
    return Hit(Chunk("d", start, start + len(words), words, context, own + extra, extra, document=DOC), score)


def test_merge_adjacent() -> None:
    """Two hits have a space between them, the third is apart; the merged hit gets the better rank and score."""
    hits = [piece("Three four.", 0.9), piece("Seven eight.", 0.8), piece("One two.", 0.7)]
    outcome = MergeAdjacent().select(ASKED, hits)
    assert [(hit.chunk.text, hit.score, hit.chunk.tokens) for hit in outcome.kept] == [
        ("One two. Three four.", 0.9, 4),
        ("Seven eight.", 0.8, 2),
    ]
    assert outcome.dropped == []
    assert len(MergeAdjacent(size=3).select(ASKED, hits).kept) == 3


def test_merging_across_a_blank_line_overlaps_and_contexts() -> None:
    """Any white space may lie between; each distinct context is kept once, and counted."""
    hits = [piece("Three four.", 0.5, "A"), piece("Five six.", 0.4, "B"), piece("four.\n\nFive", 0.3, "A")]
    (merged,) = MergeAdjacent().select(ASKED, hits).kept
    assert (merged.chunk.text, merged.chunk.context) == ("Three four.\n\nFive six.", "A\nB")
    assert (merged.chunk.tokens, merged.chunk.context_tokens) == (8, 4)


def test_hits_of_different_documents_are_not_merged() -> None:
    """The same offsets in another document are another passage."""
    other = Document("e", TEXT, tokens=DOC.tokens)
    hits = [piece("One two.", 0.9), Hit(Chunk("e", 8, 20, " Three four.", tokens=2, document=other), 0.8)]
    assert len(MergeAdjacent().select(ASKED, hits).kept) == 2


def test_top_k_keeps_the_order_of_ties() -> None:
    """A retriever returns ties in the order of document and start; `top_k` keeps that order."""
    assert kept(TopK(2).select(ASKED, scored(0.5, 0.5, 0.5))) == [0, 1]


def test_vectors_after_bm25_are_reported_and_few(
    garden_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the hits of BM25 are embedded, and no query; the trial names its embedder."""
    embedded: list[str] = []
    original = Hashing.embed

    def counted(self: Hashing, texts: Any, *, queries: bool = False) -> Any:
        assert not queries
        embedded.extend(texts)
        return original(self, texts, queries=queries)

    monkeypatch.setattr(Hashing, "embed", counted)
    base = Trial(
        "garden", Fixed(9), BM25(depth=3), embedder=Hashing(64), tokenizer="words", selector=(Normalize(), MMR(2))
    )
    made = Experiment("vectors", base, {"selector.mmr.k": [1, 2]}, base_dir=tmp_path)
    (line,) = plan(made, store=tmp_path / "s").calls
    assert line == "mmr after bm25: at most 39 chunks to embed with hashing, no charge"
    launch = run(made, store=tmp_path / "s", log=False)
    assert 0 < len(embedded) == len(set(embedded)) <= 36
    assert launch.results[0].params["embedder"] == "hashing"
    assert plan(made, store=tmp_path / "s").calls == []


def test_a_contained_hit_that_does_not_fit_is_dropped() -> None:
    """Its text is already included; its own context would make the passage too long."""
    hits = [piece("One two. Three four.", 0.9, "A"), piece("Three four.", 0.8, "B")]
    outcome = MergeAdjacent(size=6).select(ASKED, hits)
    assert [hit.chunk.text for hit in outcome.kept] == ["One two. Three four."]
    assert outcome.dropped[0].reason == "its text is in the passage from d:0-20 on"
    assert MergeAdjacent(size=8).select(ASKED, hits).kept[0].chunk.context == "A\nB"


def test_a_cut_hit_that_is_already_included() -> None:
    """With scales, the part of the parent that fits can be a child that is kept already: no text is shown twice."""
    hits = [piece("One two.", 0.9), piece("One two. Three four.", 0.8), piece("Five six.", 0.7)]
    outcome = TokenBudget(4, "cut").select(ASKED, hits)
    assert [hit.chunk.text for hit in outcome.kept] == ["One two."]
    assert outcome.dropped[0].reason == "2 left, and the part that fits is already included"
    _check(TokenBudget(4, "cut"), hits, outcome)


def test_tokens_of_a_cut_are_counted() -> None:
    """An emoji of several tokens is kept whole or not at all, so the token count is that of the kept text."""
    text = "🧑‍🍳🧑‍🍳🧑‍🍳 ok"
    doc = Document("d", text, tokens=TokenMap(Tokenizer("o200k_base").starts(text)))
    whole = Chunk("d", 0, len(text), text, tokens=doc.token_map().count(0, len(text)), document=doc)
    for budget in range(1, whole.tokens):
        part = whole.cut(budget)
        assert part is None or part.tokens == doc.token_map().count(part.start, part.end) <= budget
