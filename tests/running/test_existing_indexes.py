"""Indexes that users have in their databases, as trials: only read, and scored as their raw output."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import chromadb
import lancedb
import numpy as np
import psycopg
import pymilvus
import pytest
from chroma_server import ChromaServer, chroma_server
from postgres_server import PostgresServer, postgres_server
from project import harness, one_line

from harness import Experiment, HarnessError, Trial, run
from harness.components.chunkers import NoChunker
from harness.components.component import identity
from harness.components.embedders import Hashing
from harness.components.retrievers import Chroma, Lancedb, Milvus, Pgvector
from harness.core.rankings import unit_rows
from harness.data.dataset import read_corpus
from harness.data.manifest import read_manifest

EMBED = Hashing(64)
NAMES = {"text": "body", "vector": "embedding", "doc": "source", "start": "begins", "end": "ends", "id": "number"}


class Passage(NamedTuple):
    """A passage of a user's own index."""

    number: int
    source: str
    begins: int
    ends: int
    body: str


@pytest.fixture
def passages(garden_data: Path) -> list[Passage]:
    """Three sentences each."""
    found: list[Passage] = []
    for doc in read_corpus(read_manifest(garden_data)):
        sentences, at = doc.text.split(". "), 0
        for begin in range(0, len(sentences), 3):
            body = ". ".join(sentences[begin : begin + 3])
            found.append(Passage(len(found), doc.id, at, at + len(body), body))
            at += len(body) + 2
    return found


def vectors(passages: list[Passage]) -> np.ndarray:
    return unit_rows(EMBED.embed([one.body for one in passages]).vectors)


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    with postgres_server(tmp_path_factory.mktemp("postgres") / "data") as server:
        yield server


@pytest.fixture(scope="module")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaServer]:
    with chroma_server(tmp_path_factory.mktemp("chroma") / "data") as server:
        yield server


def in_postgres(server: PostgresServer, passages: list[Passage]) -> Pgvector:
    server.execute("CREATE SCHEMA IF NOT EXISTS mine")
    server.execute("DROP TABLE IF EXISTS mine.notes")
    columns = "number int, source text, begins int, ends int, body text, embedding vector(64)"
    server.execute(f"CREATE TABLE mine.notes ({columns})")
    with psycopg.connect(server.url) as connection:
        for one, vector in zip(passages, vectors(passages), strict=True):
            row = [*one, str(vector.tolist())]
            connection.execute("INSERT INTO mine.notes VALUES (%s, %s, %s, %s, %s, %s::vector)", row)
    return Pgvector(5, uri=server.url, existing="mine.notes", fields=NAMES)


def in_chroma(server: ChromaServer, passages: list[Passage]) -> Chroma:
    client = chromadb.HttpClient(host=server.url)
    if "notes" in [one.name for one in client.list_collections()]:
        client.delete_collection("notes")
    collection = client.create_collection("notes", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None)
    metadata = [{"source": one.source, "begins": one.begins, "ends": one.ends} for one in passages]
    ids, texts = [str(one.number) for one in passages], [one.body for one in passages]
    collection.add(ids=ids, embeddings=vectors(passages), documents=texts, metadatas=metadata)  # type: ignore[arg-type]
    named = {name: NAMES[name] for name in ("doc", "start", "end")}
    return Chroma(5, uri=server.url, existing="notes", fields=named)


def in_lancedb(folder: Path, passages: list[Passage]) -> Lancedb:
    rows = [{**one._asdict(), "embedding": vector} for one, vector in zip(passages, vectors(passages), strict=True)]
    lancedb.connect(folder / "lance").create_table("notes", rows)
    return Lancedb(5, uri=str(folder / "lance"), existing="notes", fields=NAMES)


def in_milvus(folder: Path, passages: list[Passage]) -> Milvus:
    client = pymilvus.MilvusClient(str(folder / "milvus.db"))
    schema = client.create_schema(auto_id=False)
    schema.add_field("number", pymilvus.DataType.INT64, is_primary=True)
    schema.add_field("embedding", pymilvus.DataType.FLOAT_VECTOR, dim=64)
    for name in ("source", "body"):
        schema.add_field(name, pymilvus.DataType.VARCHAR, max_length=9000)
    for name in ("begins", "ends"):
        schema.add_field(name, pymilvus.DataType.INT64)
    client.create_collection("notes", schema=schema)
    rows = [
        {**one._asdict(), "embedding": vector.tolist()} for one, vector in zip(passages, vectors(passages), strict=True)
    ]
    client.insert("notes", rows)
    index = client.prepare_index_params()
    index.add_index("embedding", index_type="FLAT", metric_type="COSINE")
    client.create_index("notes", index)
    client.close()
    from milvus_lite.server_manager import server_manager_instance

    server_manager_instance.release_server(str(folder / "milvus.db"))
    return Milvus(5, uri=str(folder / "milvus.db"), existing="notes", fields=NAMES)


@pytest.fixture(params=["pgvector", "chroma", "lancedb", "milvus"])
def made(request: pytest.FixtureRequest, tmp_path: Path, passages: list[Passage]) -> Any:
    """The passages in each database, as a retriever."""
    if request.param == "pgvector":
        return in_postgres(request.getfixturevalue("postgres"), passages)
    if request.param == "chroma":
        return in_chroma(request.getfixturevalue("chroma"), passages)
    return (in_lancedb if request.param == "lancedb" else in_milvus)(tmp_path, passages)


def trial(garden_data: Path, retriever: Any) -> Trial:
    given = {"tokenizer": "words", "embedder": EMBED, "metrics": ("recall@1", "recall@3")}
    return Trial(str(garden_data), NoChunker(), retriever, **given)  # type: ignore[arg-type]


def recall(query: Any, spans: list[Passage]) -> float:
    """Whether passages cover half of the only evidence; NaN without evidence."""
    if not query.evidence:
        return float("nan")
    (place,) = query.evidence[0].places
    covered = {at for one in spans if one.source == place.doc for at in range(one.begins, one.ends)}
    return float(2 * len(covered & set(range(place.start, place.end))) >= place.end - place.start)


@pytest.mark.parametrize("offsets", [True, False])
def test_scores_are_those_of_the_raw_output(
    made: Any, offsets: bool, passages: list[Passage], garden_data: Path, tmp_path: Path
) -> None:
    """Computed with numpy from the same vectors; with offsets, and by the texts alone."""
    fields = made.fields if offsets else {name: NAMES[name] for name in ("text", "vector") if name in made.fields}
    launch = run(Experiment("t", trial(garden_data, replace(made, fields=fields)), []), store=tmp_path / "s", log=False)
    assert launch.session is not None
    queries = launch.session.outputs(launch.session.trials[0]).queries
    asked = unit_rows(EMBED.embed([query.text for query in queries], queries=True).vectors)
    products = np.round(asked @ vectors(passages).T, 5)
    (result,) = launch.results
    for k in (1, 3):
        expected = [
            recall(query, [passages[at] for at in np.argsort(-row, kind="stable")[:k]])
            for query, row in zip(queries, products, strict=True)
        ]
        assert np.array_equal(result.scores[f"recall@{k}"], expected, equal_nan=True)
    assert result.efficiency["unmapped"] == 0
    assert "index_bytes" not in result.efficiency
    assert result.efficiency["retrieve_p99_ms"] > 0


def test_it_is_asked_once_and_never_written_to(
    made: Any, garden_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second launch asks nothing; another `release` asks again; the store has no record that `prune` could use."""
    asked: list[str] = []
    search = type(made).passages
    monkeypatch.setattr(type(made), "passages", lambda *given: asked.append(given[2]) or search(*given))
    one = trial(garden_data, made)
    for other in (one, one, replace(one, retriever=replace(made, release="2"))):
        run(Experiment("t", other, []), store=tmp_path / "s", log=False)
    assert len(asked) == 2 * len(set(asked))
    assert not (tmp_path / "s" / "databases").exists()
    assert not (tmp_path / "s" / "indexes").exists()


def test_postgres_refuses_to_write(postgres: PostgresServer, passages: list[Passage]) -> None:
    """Each transaction can only read."""
    retriever = in_postgres(postgres, passages)
    refused = pytest.raises(HarnessError, match="cannot execute DELETE in a read-only transaction")
    with refused, retriever.browsed() as connection:
        connection.execute("DELETE FROM mine.notes")
    assert postgres.execute("SELECT count(*) FROM mine.notes")[0][0] == len(passages)


def test_words_of_an_existing_table(postgres: PostgresServer, passages: list[Passage]) -> None:
    """By the text, or by a column that its owner has made of it; the same scores."""
    base = in_postgres(postgres, passages)
    postgres.execute("ALTER TABLE mine.notes ADD words tsvector")
    postgres.execute("UPDATE mine.notes SET words = to_tsvector('english', body)")
    by_text = replace(base, search="full_text", analyzer="english")
    by_column = replace(by_text, fields={**NAMES, "words": "words"})
    found = []
    for retriever in (by_text, by_column):
        with retriever.browsed() as browsed:
            found.append(retriever.passages(browsed, passages[3].body, None))
    assert [one.score for one in found[0]] == [one.score for one in found[1]]
    assert found[0][0].values["text"] == passages[3].body


def test_distances_of_chroma(chroma: ChromaServer, passages: list[Passage], garden_data: Path, tmp_path: Path) -> None:
    """Its own default, squared distances, ranks unit vectors as cosines do; the scores are negative."""
    client = chromadb.HttpClient(host=chroma.url)
    collection = client.get_or_create_collection("distances", embedding_function=None)
    given = {"embeddings": vectors(passages), "documents": [one.body for one in passages]}
    collection.add(ids=[str(one.number) for one in passages], **given)  # type: ignore[arg-type]
    cosine = in_chroma(chroma, passages)
    retrievers = [cosine, replace(cosine, existing="distances", fields={})]
    grid = Experiment("t", trial(garden_data, cosine), {"retriever": retrievers})
    one, other = run(grid, store=tmp_path / "s", log=False).results
    assert np.array_equal(one.scores["recall@3"], other.scores["recall@3"], equal_nan=True)


def test_where_an_index_is_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Answers of one database are not taken for those of another."""
    address = "postgresql://me@host/db"
    places = [address, f"{address}?options=-csearch_path%3Dother", "postgresql://you@host/db"]
    assert len({str(identity(Pgvector(uri=uri, existing="x"))) for uri in places}) == 3
    known = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        monkeypatch.setenv("CHROMA_DATABASE", name)
        known.add(str(identity(Lancedb(uri="./lance", existing="x"))))
        known.add(str(identity(Chroma(uri="http://host", existing="x"))))
    assert len(known) == 4


def test_folders_stay_as_they_are(passages: list[Passage], tmp_path: Path) -> None:
    """Chroma, which writes to a folder that it opens, opens a copy; LanceDB and Milvus Lite leave nothing beside it."""
    client = chromadb.PersistentClient(tmp_path / "chroma")
    collection = client.create_collection("notes", embedding_function=None)
    given = {"embeddings": vectors(passages), "documents": [one.body for one in passages]}
    collection.add(ids=[str(one.number) for one in passages], **given)  # type: ignore[arg-type]
    client.close()
    made = [
        Chroma(5, uri=str(tmp_path / "chroma"), existing="notes"),
        in_lancedb(tmp_path, passages),
        in_milvus(tmp_path, passages),
    ]

    def content() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    before = content()
    for one in made:
        with one.browsed() as browsed:
            assert len(one.passages(browsed, "beans", vectors(passages)[0])) == 5
    assert content() == before


def test_columns_that_are_not_there(chroma: ChromaServer, postgres: PostgresServer, passages: list[Passage]) -> None:
    """Also where the database itself would return nothing; and a graph that no index has."""
    for retriever in (in_chroma(chroma, passages), in_postgres(postgres, passages)):
        wrong = replace(retriever, fields={**retriever.fields, "doc": "sauce"})
        try:
            exchange = wrong.system.service.exchange("beans", vectors(passages)[0])  # type: ignore[union-attr]
            message = exchange.answer.failure
        except HarnessError as error:
            message = str(error)
        assert "sauce" in message
        assert "run again" not in message
    graph = replace(in_postgres(postgres, passages), search="hnsw")
    with pytest.raises(HarnessError, match=r"mine.notes is not there, or has no HNSW index"), graph.browsed():
        pass
    postgres.execute("CREATE INDEX ON mine.notes USING hnsw (embedding vector_cosine_ops)")
    postgres.execute('CREATE TABLE mine."My Notes" (LIKE mine.notes INCLUDING ALL)')
    with replace(graph, existing="mine.My Notes").browsed():
        pass
    with graph.browsed() as browsed:
        assert len(graph.passages(browsed, "", vectors(passages)[0])) == 5


@pytest.mark.parametrize("database", ["pgvector", "chroma", "lancedb", "milvus"])
def test_what_is_not_there(
    database: str, postgres: PostgresServer, chroma: ChromaServer, passages: list[Passage], tmp_path: Path
) -> None:
    """An unknown table is one line, and nothing is made."""
    if database == "milvus":
        in_milvus(tmp_path, passages)
    place = {
        "pgvector": Pgvector(uri=postgres.url, existing="none"),
        "chroma": Chroma(uri=chroma.url, existing="none"),
        "lancedb": Lancedb(uri=str(tmp_path / "lance"), existing="none"),
        "milvus": Milvus(uri=str(tmp_path / "milvus.db"), existing="none"),
    }
    system = place[database].system
    assert system is not None
    vector = np.ones(64, np.float32)
    with pytest.raises(HarnessError, match=f"retriever {database}: ") as error:
        system.service.exchange("beans", vector)  # type: ignore[union-attr]
    assert "\n" not in str(error.value)
    assert not (tmp_path / "lance").exists()


def test_through_the_command_line(garden_data: Path, postgres: PostgresServer, passages: list[Passage]) -> None:
    """A probe shows what is asked; a server that is killed is one line, and the next run goes on."""
    folder = garden_data.parents[1]
    in_postgres(postgres, passages)
    (folder / "x.yaml").write_text(
        "name: mine\ndata: garden\ntokenizer: words\nembedder: {hashing: {dimensions: 64}}\nchunker: none\n"
        f"retriever:\n  pgvector:\n    uri: {postgres.url}\n    existing: mine.notes\n    depth: 5\n"
        f"    fields: {json.dumps(NAMES)}\nselector: {{top_k: {{k: 3}}}}\nmetrics: [recall@3]\n"
    )
    shown = harness(folder, "probe", "retriever", "x.yaml", "When do beans flower?").stdout
    assert "mine.notes" in shown
    assert "(offsets)" in shown
    postgres.kill()
    one_line(
        harness(folder, "run", "x.yaml", "--no-mlflow", code=None), "retriever pgvector: postgresql://postgres@127"
    )
    postgres.start()
    done = harness(folder, "run", "x.yaml", "--no-mlflow").stdout
    assert "1 locate" in done
    assert "computed: nothing" in harness(folder, "run", "x.yaml", "--no-mlflow").stdout
