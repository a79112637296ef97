"""Vector databases find what the harness finds in memory: the same rankings where they are exact, recall where not."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bucket_server import KEYS, new_bucket, served
from milvus_server import milvus_server
from searched_corpus import SearchedCorpus, differing

from harness.components.retrievers import BM25, Dense, Lancedb, Milvus
from harness.components.retrievers.database_searches import analyzed
from harness.components.roles import Batch, IndexPlace
from harness.components.text_analysis import Analyzer
from harness.core.errors import HarnessError


@pytest.fixture(scope="module")
def corpus() -> SearchedCorpus:
    return SearchedCorpus()


@pytest.mark.parametrize("database", [Lancedb, Milvus])
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_flat_search_is_exact(database: Any, similarity: Any, corpus: SearchedCorpus, tmp_path: Path) -> None:
    """The rankings of `dense`, equal texts and texts without a word included, but for scores rounded differently."""
    found = corpus.found(database(20, similarity=similarity), tmp_path)
    expected = corpus.expected(Dense(20, similarity))
    assert differing(found, expected) <= len(corpus.queries) // 50


@pytest.mark.parametrize(
    ("database", "settings"),
    [(Lancedb, {}), (Milvus, {"k1": 1.2, "b": 0.75}), (Milvus, {}), (Milvus, {"k1": 2.0, "b": 0.1})],
)
def test_full_text_is_bm25(database: Any, settings: dict[str, float], corpus: SearchedCorpus, tmp_path: Path) -> None:
    """On the words of `bm25`; the scores of a database have the constant factor k1 + 1, and 24 bits."""
    k1, b = (settings.get("k1", 1.2), settings.get("b", 0.75)) if database is Lancedb or settings else (0.9, 0.4)
    found = corpus.found(database(20, search="full_text", **settings), tmp_path)
    expected = corpus.expected(BM25(20, k1, b))
    # LanceDB does not count the chunk without words, which changes the number and the mean length of chunks.
    error = 2e-3 if database is Lancedb else 1e-6
    assert differing(found, expected._replace(scores=expected.scores * (k1 + 1)), error) <= len(corpus.queries) // 20


def test_words_of_the_harness() -> None:
    """As many as `bm25` counts, also where its stemmer leaves nothing."""
    text = "The cat's s and CATS, s!"
    assert analyzed(text).split(" ") == [word or "_" for word in Analyzer("porter", "lucene")(text)]
    assert len(analyzed(text).split(" ")) == len(Analyzer("porter", "lucene")(text)) == 4


@pytest.mark.parametrize(
    "retriever",
    [
        Lancedb(10, "hnsw"),
        Lancedb(10, "ivf_pq", lists=2, probes=2, refine=20),
        Milvus(10, "hnsw"),
        Milvus(10, "ivf_flat", lists=4, probes=4),
    ],
    ids=repr,
)
def test_approximate_search(retriever: Any, corpus: SearchedCorpus, tmp_path: Path) -> None:
    """Most of the exact hits are found, and few probes find fewer."""
    exact = corpus.expected(Dense(10))
    found = corpus.found(retriever, tmp_path)
    recall = [len(set(found.row(at)[0]) & set(exact.row(at)[0])) / 10 for at in range(exact.queries - 1)]
    assert 0.8 < np.mean(recall) <= 1


def test_other_analyzers(corpus: SearchedCorpus, tmp_path: Path) -> None:
    """Those of LanceDB find mostly the same."""
    exact = corpus.expected(BM25(10, 1.2, 0.75))

    def recall(analyzer: Any) -> float:
        found = corpus.found(Lancedb(10, "full_text", analyzer=analyzer), tmp_path / analyzer)
        rows = [(set(found.row(at)[0]), set(exact.row(at)[0])) for at in range(exact.queries) if len(exact.row(at)[0])]
        return float(np.mean([len(one & other) / len(other) for one, other in rows]))

    assert 0.5 < recall("standard") < 1
    assert 0.5 < recall("english") < 1


@pytest.fixture(scope="module")
def bucket() -> Iterator[Callable[[pytest.MonkeyPatch], str]]:
    """Makes a bucket on a server of this machine, and lets LanceDB use it."""
    with served() as address:

        def made(monkeypatch: pytest.MonkeyPatch) -> str:
            for name, value in {**KEYS, "AWS_ENDPOINT": address, "AWS_EC2_METADATA_DISABLED": "true"}.items():
                monkeypatch.setenv(name, value)
            return new_bucket(address)

        yield made


def test_lancedb_in_a_bucket(
    bucket: Callable[[pytest.MonkeyPatch], str], corpus: SearchedCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same rankings, without a file on this machine; a bucket that is not there is one line without keys."""
    uri = bucket(monkeypatch)
    assert differing(corpus.found(Lancedb(20, uri=uri), tmp_path), corpus.expected(Dense(20))) <= 1
    assert not list(tmp_path.iterdir())
    with pytest.raises(
        HarnessError, match=r"^retriever lancedb: s3://none/x cannot be used \(.*\); nothing fini"
    ) as error:
        Lancedb(uri="s3://none/x").is_built(IndexPlace("harness_x", tmp_path), 1)
    assert "testing-secret" not in str(error.value)
    assert "\n" not in str(error.value)


def test_no_server(tmp_path: Path) -> None:
    """One line, at once."""
    with pytest.raises(
        HarnessError, match=r"^retriever milvus: http://127.0.0.1:9 cannot be used \(.*\); nothing fini"
    ):
        Milvus(uri="http://127.0.0.1:9").is_built(IndexPlace("harness_x", tmp_path), 1)


def test_a_server_killed_in_the_middle_of_a_build(corpus: SearchedCorpus, tmp_path: Path) -> None:
    """One line; what it had is not taken for an index, and the next build replaces it."""
    with milvus_server(tmp_path / "data") as server:
        milvus, place = Milvus(20, uri=server.url), IndexPlace("harness_cookbook", tmp_path)

        def killing() -> Iterator[Batch]:
            batches = corpus.batches(milvus)
            yield from itertools.islice(batches, 2)
            server.kill()
            yield from batches

        with pytest.raises(HarnessError, match=r"^retriever milvus: http://.* cannot be used \(.*\); nothing fini"):
            milvus.build(place, killing())
        server.start()
        assert not milvus.is_built(place, len(corpus.texts))
        assert differing(corpus.found(milvus, tmp_path), corpus.expected(Dense(20))) <= 1
