"""Approximate search with FAISS: compared with brute force in numpy and with hnswlib, and reproducible."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness import Experiment, Trial, run
from harness.components.chunkers import Fixed
from harness.components.embedders import Hashing
from harness.components.retrievers import Dense, Hybrid
from harness.core.rankings import Rankings
from harness.running.stages.ranking_checks import overlap

RNG = np.random.default_rng(11)
CENTRES = RNG.normal(size=(40, 32))
CORPUS = (CENTRES[RNG.integers(40, size=6000)] + 1.5 * RNG.normal(size=(6000, 32))).astype(np.float32)
QUERIES = (CENTRES[RNG.integers(40, size=50)] + 1.5 * RNG.normal(size=(50, 32))).astype(np.float32)


def unit(rows: Any) -> Any:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def searched(retriever: Dense) -> Rankings:
    return retriever.search(retriever.index([], CORPUS), CORPUS, ["?"] * len(QUERIES), QUERIES)


@pytest.fixture(scope="module")
def exact() -> Rankings:
    cosines = np.round(unit(QUERIES.astype(float)) @ unit(CORPUS.astype(float)).T, 5)
    return Rankings.of([(order, row[order]) for row in cosines for order in [np.lexsort((np.arange(6000), -row))[:10]]])


def test_flat_is_brute_force(exact: Rankings) -> None:
    """The same hits for every query; scores are equal up to rounding."""
    found = searched(Dense(10))
    assert overlap(found, exact) > 0.995
    assert found.scores == pytest.approx(exact.scores, abs=2e-5)


@pytest.mark.parametrize(
    ("retriever", "min_value"), [(Dense(10, ann="hnsw"), 0.97), (Dense(10, ann="ivf", probes=20), 0.9)]
)
def test_approximate_search_finds_most_neighbours(retriever: Dense, min_value: float, exact: Rankings) -> None:
    """The scores of the neighbours found are exact cosines."""
    found = searched(retriever)
    assert overlap(found, exact) >= min_value
    cosines = unit(QUERIES) @ unit(CORPUS).T
    for query in range(len(QUERIES)):
        ids, scores = found.row(query)
        assert scores == pytest.approx(cosines[query, ids], abs=2e-5)


def test_more_effort_finds_more(exact: Rankings) -> None:
    """From probing one of a hundred cells to probing all of them, which is exact."""
    shares = [overlap(searched(Dense(10, ann="ivf", probes=probes)), exact) for probes in (1, 8, 100)]
    assert shares[0] < shares[1] < shares[2]
    assert shares[2] > 0.995


def test_hnsw_is_as_good_as_hnswlib(exact: Rankings) -> None:
    """With the same parameters, another implementation of the paper has a similar recall."""
    hnswlib = pytest.importorskip("hnswlib")
    reference = hnswlib.Index(space="cosine", dim=32)
    reference.init_index(max_elements=6000, ef_construction=200, M=32, random_seed=1)
    reference.set_num_threads(1)
    reference.add_items(CORPUS)
    reference.set_ef(100)
    ids, distances = reference.knn_query(QUERIES, k=10)
    rows = [(row.astype(np.int64), 1 - distance) for row, distance in zip(ids, distances, strict=True)]
    assert overlap(searched(Dense(10, ann="hnsw")), exact) == pytest.approx(overlap(Rankings.of(rows), exact), abs=0.03)


@pytest.mark.parametrize("ann", ["hnsw", "ivf"])
def test_an_index_is_the_same_in_every_run(ann: Any) -> None:
    """The index is byte-identical; threads and timing do not affect it."""
    one, other = (Dense(10, ann=ann).index([], CORPUS).arrays["faiss"] for _ in range(2))
    assert np.array_equal(one, other)


def test_few_chunks_make_few_cells() -> None:
    """A corpus smaller than the number of lists, of one chunk, and of no chunk."""
    for count in (60, 1, 0):
        retriever = Dense(5, ann="ivf")
        corpus = CORPUS[:count]
        found = retriever.search(retriever.index([], corpus), corpus, ["?"], QUERIES[:1])
        assert len(found.row(0)[0]) == min(5, count)


def test_recall_against_exact_search_is_logged(garden_data: Path, tmp_path: Path) -> None:
    """Logged as `ann_recall`, except for exact search. Trials that differ in search settings share one index."""
    base = Trial("garden", Fixed(5), Dense(10), embedder=Hashing(64), tokenizer="words")
    grid = {
        "retriever": [
            Dense(10),
            Dense(10, ann="ivf", lists=5, probes=1),
            Dense(10, ann="ivf", lists=5, probes=5),
            Hybrid(10, dense=Dense(ann="hnsw")),
        ]
    }
    launch = run(Experiment("ann", base, grid, base_dir=tmp_path), store=tmp_path / "s", log=False)
    lines = [result.efficiency.get("ann_recall") for result in launch.results]
    assert lines[0] is None
    assert lines[1] is not None
    assert lines[1] < lines[2] == 1.0  # type: ignore[operator]
    assert lines[3] is not None
    # ivf once for both, hnsw, bm25; exact search needs none.
    assert launch.work["index"] == 3


@pytest.mark.parametrize("ann", ["flat", "hnsw"])
def test_scores_do_not_depend_on_threads(ann: Any) -> None:
    """They are inner products in double precision, rounded: equal to numpy's to the last bit, for 2,500 hits.

    In single precision, one in about a hundred would be rounded to another fifth decimal.
    """
    found = searched(Dense(depth=50, ann=ann))
    corpus, queries = (unit(rows).astype(np.float32).astype(np.float64) for rows in (CORPUS, QUERIES))
    for at, query in enumerate(queries):
        ids, scores = found.row(at)
        assert scores.tolist() == (np.round(corpus[ids] @ query, 5) + 0.0).tolist()


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_many_chunks_tie_at_the_depth(similarity: Any) -> None:
    """The first of them in chunk order are found, however many tie, beside the better and without the worse."""
    query, better, worse = np.array([[1, 0, 0]], np.float32), [[1, 0.1, 0]], [[0, 1, 0]]
    corpus = np.array([[1, 1, 0]] * 60 + worse * 20 + better + [[1, 0, 1]] * 80 + better, np.float32)
    corpus[:60] *= 1 if similarity == "dot" else np.linspace(1, 2, 60, dtype=np.float32)[:, None]
    retriever = Dense(10, similarity)
    asked = np.concatenate([query, np.zeros((1, 3), np.float32)])
    found = retriever.search(retriever.index([], corpus), corpus, ["?", "nothing"], asked)
    if similarity == "cosine":
        assert found.row(0)[0].tolist() == [80, 161, *range(8)]
    else:
        assert found.row(0)[0].tolist() == list(range(10))  # all products are 1
    assert found.row(1)[0].tolist() == list(range(10))
