"""PostgreSQL with pgvector, and Chroma, as real servers: the rankings of exact search, words, both, and recall."""

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chroma_server import chroma_server
from postgres_server import PostgresServer, postgres_server
from searched_corpus import SearchedCorpus, differing

from harness.components.retrievers import Chroma, Dense, Lancedb, Milvus, Pgvector
from harness.components.retrievers.tsvector import words_of
from harness.components.roles import Batch, IndexPlace
from harness.core.errors import HarnessError
from harness.core.rankings import Rankings


@pytest.fixture(scope="module")
def corpus() -> SearchedCorpus:
    return SearchedCorpus()


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    with postgres_server(tmp_path_factory.mktemp("postgres") / "data") as server:
        yield server


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_flat_search_is_exact(
    similarity: Any, postgres: PostgresServer, corpus: SearchedCorpus, tmp_path: Path
) -> None:
    """The rankings of `dense`, equal texts and texts without a word included, but for scores rounded differently."""
    found = corpus.found(Pgvector(20, similarity=similarity, uri=postgres.url), tmp_path)
    assert differing(found, corpus.expected(Dense(20, similarity))) <= len(corpus.queries) // 50


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_hnsw(similarity: Any, postgres: PostgresServer, corpus: SearchedCorpus, tmp_path: Path) -> None:
    """Most of the exact hits are found, by a graph that is worth its name."""
    exact = corpus.expected(Dense(20, similarity))
    for retriever in (Pgvector(20, "hnsw", similarity, uri=postgres.url), Chroma(20, similarity)):
        found = corpus.found(retriever, tmp_path)
        recall = [len(set(found.row(at)[0]) & set(exact.row(at)[0])) / 20 for at in range(exact.queries - 1)]
        assert 0.95 < np.mean(recall) <= 1
    assert postgres.execute("SELECT amname FROM pg_am JOIN pg_class c ON relam = pg_am.oid WHERE relname ~ 'content'")


def test_chroma_finds_as_many_as_are_asked_for(corpus: SearchedCorpus, tmp_path: Path) -> None:
    """Its `ef_search` belongs to the collection: an index is not shared with trials that go deeper."""
    assert Chroma(50).index_settings() == Chroma(20).index_settings()
    assert Chroma(200).index_settings() != Chroma(20).index_settings()
    found = corpus.found(Chroma(200), tmp_path)
    assert {len(found.row(at)[0]) for at in range(found.queries)} == {200}


def best_by_words(corpus: SearchedCorpus, query: str, server: PostgresServer) -> dict[int, float]:
    """What PostgreSQL itself says of every text that has a word of the query."""
    words = words_of(query)
    found = {}
    for at, text in enumerate(corpus.texts):
        if set(words) & set(known := words_of(text)):
            asked = " | ".join(sorted(set(words)))
            vector = f"to_tsvector('simple', '{' '.join(known)}')"
            found[at] = server.execute(f"SELECT ts_rank({vector}, to_tsquery('simple', '{asked}'))")[0][0]
    return found


def test_full_text(postgres: PostgresServer, corpus: SearchedCorpus, tmp_path: Path) -> None:
    """Chunks with any word of the query, by `ts_rank`; a text without words finds nothing."""
    found = corpus.found(Pgvector(20, "full_text", uri=postgres.url), tmp_path)
    for query in (0, 7):
        ranks = best_by_words(corpus, corpus.queries[query], postgres)
        best = sorted(ranks, key=lambda at: (-ranks[at], at))[:20]
        assert found.row(query)[0].tolist() == best
        assert found.row(query)[1] == pytest.approx([ranks[at] for at in best], abs=1e-8)
    assert corpus.queries[-1] == "…"
    assert not len(found.row(len(corpus.queries) - 1)[0])


def test_words_of_postgres(postgres: PostgresServer, corpus: SearchedCorpus, tmp_path: Path) -> None:
    """Its own configurations find other chunks; one that is not there is one line."""
    ours, english, simple = (
        corpus.found(Pgvector(10, "full_text", analyzer=name, uri=postgres.url), tmp_path)
        for name in ("harness", "english", "simple")
    )
    same = [
        np.mean([set(one.row(at)[0]) == set(other.row(at)[0]) for at in range(ours.queries)])
        for one, other in ((ours, english), (english, simple))
    ]
    assert all(0 < share < 1 for share in same)
    with pytest.raises(HarnessError, match="pgvector: .* cannot be used .*klingon"):
        corpus.found(Pgvector(10, "full_text", analyzer="klingon", uri=postgres.url), tmp_path)


def test_hybrid(postgres: PostgresServer, corpus: SearchedCorpus, tmp_path: Path) -> None:
    """The sums of the reciprocal ranks among the first of both."""
    found, near, matching = (
        corpus.found(Pgvector(20, search, uri=postgres.url, c=60), tmp_path)
        for search in ("hybrid", "hnsw", "full_text")
    )
    for query in range(found.queries):
        expected: dict[int, float] = {}
        for ranked in (near, matching):
            for rank, chunk in enumerate(ranked.row(query)[0].tolist(), 1):
                expected[chunk] = expected.get(chunk, 0) + 1 / (60 + rank)
        best = sorted(expected, key=lambda chunk: (-round(expected[chunk], 9), chunk))[:20]
        ids, scores, *_ = found.row(query)
        assert scores == pytest.approx([expected[chunk] for chunk in best], abs=1e-8)
        # Of chunks with equal vectors, those that the graph finds may be others.
        assert len(set(ids.tolist()) & set(best)) >= 18


def test_odd_texts(postgres: PostgresServer, tmp_path: Path) -> None:
    """Quotes, backslashes, NUL and words beyond all limits are text like any other."""
    texts = ["it's a \\ 'quoted' \0 text", "word " * 20_000 + "x" * 5000, "", "🙂 naïve"]
    for analyzer in ("harness", "english"):
        retriever = Pgvector(5, "full_text", analyzer=analyzer, uri=postgres.url)
        place = IndexPlace("harness_odd", tmp_path)
        retriever.build(place, iter([Batch(np.arange(4), texts, None)]))
        assert retriever.is_built(place, 4)
        with retriever.opened(place) as opened:
            found = retriever.nearest(opened, ["quoted", "word'\\", "x" * 5000, "naïve"], None)
        assert [found.row(at)[0].tolist() for at in range(4)] == [[0], [1], [], [3]]


def test_too_many_dimensions_for_a_graph(postgres: PostgresServer, tmp_path: Path) -> None:
    """One line, before anything is copied."""
    batch = Batch(np.arange(2), ["a", "b"], np.ones((2, 2001), np.float32))
    with pytest.raises(HarnessError, match="2,001 dimensions, but an HNSW index .* takes 2,000; use"):
        Pgvector(search="hnsw", uri=postgres.url).build(IndexPlace("harness_wide", tmp_path), iter([batch]))


Made = Callable[[Path], Any]


@pytest.mark.parametrize(("server", "retriever"), [(postgres_server, Pgvector), (chroma_server, Chroma)])
def test_a_server_killed_in_the_middle_of_a_build(
    server: Made, retriever: Any, corpus: SearchedCorpus, tmp_path: Path
) -> None:
    """One line; what it had is not taken for an index, and the next build replaces it."""
    with server(tmp_path / "data") as running:
        database, place = retriever(20, uri=running.url), IndexPlace("harness_cookbook", tmp_path)

        def killing() -> Iterator[Batch]:
            batches = corpus.batches(database)
            yield from itertools.islice(batches, 2)
            running.kill()
            yield from batches

        begins = rf"^retriever {database.name()}: .* cannot be used \(.*\); nothing fini"
        with pytest.raises(HarnessError, match=begins) as error:
            database.build(place, killing())
        assert "\n" not in str(error.value)
        with pytest.raises(HarnessError, match=begins):
            database.is_built(place, 1)
        running.start()
        assert not database.is_built(place, len(corpus.texts))
        found: Rankings = corpus.found(database, tmp_path)
        assert found.scores[0] == pytest.approx(corpus.expected(Dense(20)).scores[0], abs=2e-5)
        assert database.is_built(place, len(corpus.texts))
        database.drop(place)
        database.drop(place)
        assert not database.is_built(place, len(corpus.texts))


def test_a_database_without_the_extension(postgres: PostgresServer, tmp_path: Path) -> None:
    """It is not added: that is for the owner to do."""
    postgres.execute("CREATE DATABASE plain")

    uri = f"{postgres.url.rpartition('/')[0]}/plain"
    with pytest.raises(HarnessError, match="/plain has no type `vector`; its owner can add it by: CREATE EXTENSION v"):
        Pgvector(uri=uri).is_built(IndexPlace("harness_x", tmp_path), 1)
    assert not Pgvector(search="full_text", uri=uri).is_built(IndexPlace("harness_x", tmp_path), 1)


@pytest.mark.parametrize(
    ("retriever", "message"),
    [
        (Pgvector(), "uri: expected a PostgreSQL URL"),
        (Pgvector(uri="postgresql://me:secret@host/db"), "uri: holds a password"),
        (Pgvector(uri="postgresql://host/db?password=secret"), "uri: holds a password"),
        (Pgvector(uri="postgresql://host/db", m=50), "ef_construction: expected at least 2 \\* m = 100, got 64"),
        (Pgvector(uri="postgresql://host/db", existing="x", search="hybrid"), "search: hybrid is for an index that"),
        (Pgvector(uri="postgresql://host/db", existing="x", search="full_text"), "analyzer: expected the text search"),
        (Pgvector(uri="postgresql://host/db", fields={"text": "x"}), "fields: is only for an index that is there"),
        (Chroma(uri="http://me:secret@host"), "uri: holds a user"),
        (Milvus(uri="http://me:secret@host"), "uri: holds a user"),
        (Milvus(uri="localhost:19530"), "uri: is not an address; .*:19530; or name a file"),
        (Milvus(search="full_text", analyzer="english"), "analyzer: Milvus Lite has no english"),
        (Lancedb(uri="s3://me:secret@bucket/x"), "uri: holds a user"),
        (Chroma(uri="http://host?x=1"), "uri: contains a query"),
        (Chroma(existing="x"), "uri: is needed for an index that is there already"),
        (Chroma(uri="here", existing="x", fields={"txt": "x"}), "fields: expected text, doc, start, .*, got 'txt'"),
    ],
    ids=lambda value: None,
)
def test_settings_that_cannot_work(retriever: Any, message: str) -> None:
    """One line that names the setting."""

    problem = retriever.problem()
    assert problem is not None
    assert re.match(message, problem)
    assert "secret" not in problem
