"""Chunkers that use vectors: checked by hand, against LlamaIndex, and against every possible segmentation."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import Experiment, Trial, run
from harness.components.chunkers import ClusterSemantic, Semantic
from harness.components.chunkers.cluster_semantic import best_cuts
from harness.components.chunkers.gaps import gap_similarities
from harness.components.embedders import Hashing
from harness.components.retrievers import BM25
from harness.components.selectors import TopK
from harness.core.records import Document, Spans, TokenMap
from harness.core.tokenizer import Tokenizer

WORDS = Tokenizer("words")
SENTENCES = ["Rye is dark.", "Rye is dense.", "Cats purr.", "Cats sleep.", "Cats purr and sleep."]
TEXT = " ".join(SENTENCES)
# Two topics: the cosines of neighbours are 1, 0, 1, 0.6.
VECTORS = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0.8, 0.6]], np.float32)


def cut(chunker: Any, vectors: Any = VECTORS, text: str = TEXT) -> list[str]:
    doc = Document("d", text, tokens=TokenMap(WORDS.starts(text)))
    pieces = chunker.pieces(doc)
    return [text[start:end] for start, end in chunker.join(doc, pieces, vectors)]


def test_neighbours_by_hand() -> None:
    """One sentence on each side, and two."""
    assert gap_similarities(VECTORS, 1).tolist() == pytest.approx([1, 0, 1, 0.6])
    # Gap 2, two a side: (0.5, 0.5) of sentences 2 and 3 against (0.4, 0.8) of 4 and 5.
    expected = (0.5 * 0.4 + 0.5 * 0.8) / (np.hypot(0.5, 0.5) * np.hypot(0.4, 0.8))
    assert gap_similarities(VECTORS, 2)[2] == pytest.approx(expected, abs=1e-5)


def test_cut_below_a_threshold() -> None:
    """0 is below 0.5, 0.6 is not; 0.6 is not below 0.6."""
    assert cut(Semantic(threshold=0.5)) == ["Rye is dark. Rye is dense.", "Cats purr. Cats sleep. Cats purr and sleep."]
    assert len(cut(Semantic(threshold=0.6))) == 2
    assert len(cut(Semantic(threshold=0.61))) == 3


def test_cut_above_a_percentile_of_distances() -> None:
    """Distances 0, 1, 0, 0.4: the median is 0.2, the 75th percentile 0.55, the 100th cuts nothing."""
    assert len(cut(Semantic(percentile=50))) == 3
    assert len(cut(Semantic(percentile=75))) == 2
    assert len(cut(Semantic(percentile=100))) == 1


def test_a_long_chunk_is_cut_at_the_weakest_gap() -> None:
    """No gap is below the threshold, but 19 tokens are more than 12: the cut is between the topics first."""
    expected = ["Rye is dark. Rye is dense.", "Cats purr. Cats sleep. Cats purr and sleep."]
    assert cut(Semantic(size=12, threshold=-1)) == expected


def test_a_short_chunk_joins_the_more_similar_neighbour() -> None:
    """With a cut at every gap, each sentence below 5 tokens joins the neighbour with the higher cosine."""
    parts = cut(Semantic(size=50, min_size=5, threshold=1.0))
    assert all(WORDS.count(part) >= 5 for part in parts)
    assert " ".join(parts) == TEXT
    assert parts[0] == "Rye is dark. Rye is dense."


def test_texts_of_one_sentence_and_of_none() -> None:
    """Without gaps or vectors there is no error."""
    assert cut(Semantic(), VECTORS[:1], "Rye is dark.") == ["Rye is dark."]
    assert cut(Semantic(), VECTORS[:0], "") == []
    assert cut(ClusterSemantic(), VECTORS[:0], " \n") == []


@given(seed=st.integers(0, 10_000), n=st.integers(1, 25), percentile=st.integers(0, 100))
@settings(max_examples=80, deadline=None)
def test_semantic_matches_llama_index(seed: int, n: int, percentile: int) -> None:
    """The same cuts for the same sentences and vectors, with each sentence embedded alone."""
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.node_parser import SemanticSplitterNodeParser

    rng = np.random.default_rng(seed)
    sentences = [f"Sentence {at} stands here." for at in range(n)]
    text = " ".join(sentences)
    rows = rng.normal(size=(n, 5)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)

    class Known(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return [float(x) for x in rows[int(text.split()[1])]]

        _get_query_embedding = _get_text_embedding

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    parser = SemanticSplitterNodeParser.from_defaults(
        embed_model=Known(), breakpoint_percentile_threshold=percentile, sentence_splitter=lambda _: sentences
    )
    object.__setattr__(parser, "buffer_size", 0)
    groups = parser._build_sentence_groups(sentences)
    for group, row in zip(groups, rows, strict=True):
        group["combined_sentence_embedding"] = [float(x) for x in row]
    distances = parser._calculate_distances_between_sentence_groups(groups)
    reference = parser._build_node_chunks(groups, [round(distance, 5) for distance in distances])
    chunks = cut(Semantic(10_000, percentile=percentile), rows, text)
    assert [part.replace(" ", "") for part in chunks] == [part.replace(" ", "") for part in reference]


def total(vectors: Any, bounds: list[int]) -> float:
    """The sum over pairs within chunks of (cosine - mean cosine of all pairs), term by term."""
    pairs = [float(a @ b) for a, b in itertools.combinations(vectors, 2)]
    mean = sum(pairs) / len(pairs) if pairs else 0.0
    inside = 0.0
    for lo, hi in itertools.pairwise(bounds):
        inside += sum(float(a @ b) - mean for a, b in itertools.combinations(vectors[lo:hi], 2))
    return inside


@given(seed=st.integers(0, 10_000), n=st.integers(1, 9), longest=st.integers(1, 9))
@settings(max_examples=150, deadline=None)
def test_no_segmentation_is_better(seed: int, n: int, longest: int) -> None:
    """No segmentation into chunks of at most `longest` pieces has a higher sum."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, 3)) + 0.5
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    first = np.maximum(np.arange(n) - longest + 1, 0)
    best = -np.inf
    for inner in itertools.chain.from_iterable(itertools.combinations(range(1, n), r) for r in range(n)):
        bounds = [0, *inner, n]
        if all(hi - lo <= longest for lo, hi in itertools.pairwise(bounds)):
            best = max(best, total(vectors, bounds))
    bounds = [0, *best_cuts(vectors, first), n]
    assert all(hi - lo <= longest for lo, hi in itertools.pairwise(bounds))
    assert total(vectors, bounds) == pytest.approx(best, abs=1e-6)


def test_clusters_by_hand() -> None:
    """Two topics of two and three pieces: pairs within a topic are above the mean, pairs across topics below."""
    vectors = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 1]], float)
    assert best_cuts(vectors, np.zeros(5, int)) == [2]
    # All vectors equal: every pair equals the mean, all segmentations tie, and the fewest cuts win.
    assert best_cuts(np.ones((4, 1)), np.zeros(4, int)) == []


def clustered(chunker: ClusterSemantic) -> tuple[Spans, Spans]:
    """Pieces and chunks of a text, with vectors of hashed words."""
    doc = Document("d", TEXT, tokens=TokenMap(WORDS.starts(TEXT)))
    pieces: Spans = chunker.pieces(doc)
    return pieces, chunker.join(doc, pieces, Hashing(32).embed([TEXT[a:b] for a, b in pieces]).vectors)


def test_a_chunk_has_as_many_pieces_as_the_published_code_allows() -> None:
    """`size // piece` pieces, even if they have few tokens: three pieces of similar texts although six would fit."""
    alike = np.ones((6, 1), np.float32)
    text = "a b. " * 6
    doc = Document("d", text, tokens=TokenMap(WORDS.starts(text)))
    pieces: Spans = [(5 * n, 5 * n + 4) for n in range(6)]
    # All pieces are equal, so all segmentations tie and the fewest cuts win: two chunks of three pieces.
    assert ClusterSemantic(size=18, piece=6).join(doc, pieces, alike) == [(0, 14), (15, 29)]
    assert ClusterSemantic(size=18, piece=6, bound="tokens").join(doc, pieces, alike) == [(0, 29)]


@given(seed=st.integers(0, 10_000), n=st.integers(2, 12), longest=st.integers(1, 12))
@settings(max_examples=100, deadline=None)
def test_the_published_program_finds_no_higher_sum(seed: int, n: int, longest: int) -> None:
    """A plain version of the report's dynamic program, pair by pair, reaches the same reward."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, 3)) + 0.5
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    reward = vectors @ vectors.T
    reward -= reward[np.triu_indices(n, k=1)].mean()
    np.fill_diagonal(reward, 1)
    best = [0.0]
    for end in range(1, n + 1):
        starts = range(max(0, end - longest), end)
        best.append(max(best[start] + reward[start:end, start:end].sum() for start in starts))
    first = np.maximum(np.arange(n) - longest + 1, 0)
    bounds = [0, *best_cuts(vectors, first), n]
    reached = sum(reward[lo:hi, lo:hi].sum() for lo, hi in itertools.pairwise(bounds))
    assert reached == pytest.approx(best[-1], abs=1e-5)


def test_no_chunk_is_larger_than_its_size_in_tokens() -> None:
    """Each chunk begins and ends with pieces of at most `piece` tokens."""
    pieces, spans = clustered(ClusterSemantic(size=9, piece=4, bound="tokens"))
    doc = Document("d", TEXT, tokens=TokenMap(WORDS.starts(TEXT)))
    assert all(doc.token_map().count(*span) <= 9 for span in spans)
    assert {span[0] for span in spans} <= {piece[0] for piece in pieces}


def test_each_sentence_is_embedded_once(garden_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In batches and cached: other settings, another chunker with the same sentences, or a second launch embed none."""
    batches: list[list[str]] = []
    original = Hashing.embed

    def counted(self: Hashing, texts: Any, *, queries: bool = False) -> Any:
        batches.append(list(texts))
        return original(self, texts, queries=queries)

    monkeypatch.setattr(Hashing, "embed", counted)
    base = Trial("garden", Semantic(), BM25(), embedder=Hashing(64), tokenizer="words", selector=(TopK(5),))
    grid = {"chunker": [Semantic(), Semantic(percentile=80), Semantic(200, window=3)], "selector.top_k.k": [3, 5]}
    launch = run(Experiment("semantic", base, grid, base_dir=tmp_path), store=tmp_path / "s", log=False)
    embedded = [text for batch in batches for text in batch]
    assert len(embedded) == len(set(embedded)) == 72  # six documents of twelve sentences
    assert len(batches) == 1
    assert (launch.work["chunk"], launch.work["embed"]) == (3, 72)
    grid = {**grid, "selector.top_k.k": [1, 2, 3, 4, 5]}
    again = run(Experiment("semantic", base, grid, base_dir=tmp_path), store=tmp_path / "s", log=False)
    assert not {"chunk", "embed", "index", "retrieve", "tokenize"} & set(again.work)
    assert len(batches) == 1


def test_the_embedder_is_part_of_the_chunking(garden_data: Path, tmp_path: Path) -> None:
    """Even with BM25 retrieval: other vectors give other chunks, and the params name the embedder."""
    base = Trial("garden", Semantic(threshold=0.5), BM25(), embedder=Hashing(64), tokenizer="words")
    grid = {"embedder": [Hashing(64), Hashing(8, pairs=False)]}
    launch = run(Experiment("semantic", base, grid, base_dir=tmp_path), store=tmp_path / "s", log=False)
    one, other = launch.results
    assert one.params["embedder"] == "hashing"
    assert one.efficiency["chunks"] != other.efficiency["chunks"]
    assert "embed_p50_ms" not in one.efficiency  # no query is embedded
