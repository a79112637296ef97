"""BM25 against rank_bm25 and bm25s on the same tokens and settings."""

import bm25s
import numpy as np
import pytest
from rank_bm25 import BM25Okapi

from harness.components.retrievers import BM25
from harness.components.text_analysis import Analyzer

RNG = np.random.default_rng(8)
VOCABULARY = [f"w{n}" for n in range(60)]
TEXTS = [" ".join(RNG.choice(VOCABULARY, RNG.integers(1, 40), p=np.arange(60, 0, -1) / 1830)) for _ in range(80)]
QUERIES = [" ".join(RNG.choice(VOCABULARY, RNG.integers(1, 6))) for _ in range(40)] + [
    "w1 w1 w5",
    "unknown w3",
    "unknown",
]


def harness_scores(**settings: object) -> list[dict[int, float]]:
    retriever = BM25(depth=80, stemmer="none", stop_words="none", **settings)  # type: ignore[arg-type]
    found = retriever.search(retriever.index(TEXTS), None, QUERIES, None)
    rows = [found.row(at) for at in range(len(QUERIES))]
    return [dict(zip(ids.tolist(), scores.tolist(), strict=True)) for ids, scores in rows]


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.4), (2.0, 0.0), (1.2, 1.0)])
def test_okapi_is_rank_bm25(k1: float, b: float) -> None:
    """Equal scores and ranks, including words in more than half of the chunks (negative idf)."""
    reference = BM25Okapi([text.split() for text in TEXTS], k1=k1, b=b)
    for query, got in zip(QUERIES, harness_scores(k1=k1, b=b, variant="okapi"), strict=True):
        scores = reference.get_scores(query.split())
        assert got == pytest.approx({at: scores[at] for at in got}, abs=1e-8)
        shares = {at for at, text in enumerate(TEXTS) if set(text.split()) & set(query.split())}
        assert set(got) == shares
        expected = sorted(shares, key=lambda at: (-round(scores[at], 9), at))
        assert list(got) == expected


@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (1.5, 0.75)])
def test_lucene_is_bm25s(k1: float, b: float) -> None:
    """bm25s leaves out the constant factor k1 + 1, too."""
    reference = bm25s.BM25(method="lucene", k1=k1, b=b, dtype="float64")
    reference.index([text.split() for text in TEXTS], show_progress=False)
    for query, got in zip(QUERIES, harness_scores(k1=k1, b=b), strict=True):
        known = [word for word in query.split() if word in VOCABULARY and any(word in text.split() for text in TEXTS)]
        scores = reference.get_scores(known) if known else np.zeros(len(TEXTS))
        assert got == pytest.approx({at: scores[at] for at in got}, rel=1e-6)


def test_two_words_by_hand() -> None:
    """N = 2, 'salt' in one chunk of 2 words, mean length 1.5: idf = ln 2, over 1 + k1 (1 - b + b 2 / 1.5)."""
    retriever = BM25(depth=5, k1=1.0, b=0.5, stemmer="none")
    found = retriever.search(retriever.index(["salt pepper", "sugar"]), None, ["salt"], None)
    ids, scores = found.row(0)
    assert ids.tolist() == [0]
    assert scores[0] == pytest.approx(np.log(2) / (1 + 1.0 * (0.5 + 0.5 * 2 / 1.5)), abs=1e-9)


def test_the_analyzer_lowercases_stems_and_removes_stop_words() -> None:
    """Like Lucene's English analyzer; only whole words are stop words."""
    assert Analyzer("porter", "lucene")("The Baker’s loaves WERE rising into theory") == [
        "baker",
        "loav",
        "were",
        "rise",
        "theori",
    ]
    assert Analyzer("none", "none")("L'été, 20 °C") == ["l", "été", "20", "c"]
