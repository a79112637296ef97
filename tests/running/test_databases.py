"""Trials in vector databases, through the command line: compared with exact search, killed, and cleaned up."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chroma_server import chroma_server
from milvus_server import milvus_server
from postgres_server import postgres_server
from project import harness, one_line, started

from harness import Experiment, Trial, run
from harness.components.chunkers import Fixed
from harness.components.embedders import Hashing
from harness.components.retrievers import Chroma, Dense, Lancedb, Milvus, Pgvector
from harness.components.roles import BaseRetriever
from harness.data.importers import import_dataset
from harness.data.manifest import read_manifest
from harness.running.stages.ranking_checks import read_rankings

DATABASES = """\
name: databases
data: garden
tokenizer: words
chunker: {fixed: {size: 20}}
embedder: {hashing: {dimensions: 64}}
retriever: {dense: {depth: 5}}
selector: {top_k: {k: 3}}
metrics: [recall@3]
grid:
  retriever: [%s]
"""
FOUR = "{dense: {depth: 5}}, {lancedb: {depth: 5}}, {milvus: {depth: 5}}, {lancedb: {depth: 5, search: full_text}}"


def project(folder: Path, retrievers: str = FOUR) -> Path:
    """An experiment beside the garden's data."""
    (folder / "x.yaml").write_text(DATABASES % retrievers)
    return folder


def results(folder: Path) -> list[dict[str, Any]]:
    """The trials of a comparison."""
    found: list[dict[str, Any]] = json.loads(harness(folder, "compare", "x.yaml", "--json").stdout)["rows"]
    return found


@pytest.fixture
def folder(garden_data: Path) -> Path:
    return garden_data.parents[1]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_they_are_as_good_as_exact_search(folder: Path, workers: str) -> None:
    """The same scores and rankings; recall, size and time of the index are recorded; a second run has nothing to do."""
    done = harness(project(folder), "run", "x.yaml", "--no-mlflow", "--workers", workers)
    assert " 3 index," in f"{done.stdout.splitlines()[-1]},"
    dense, lance, milvus, text = results(folder)
    assert dense["mean"] == lance["mean"] == milvus["mean"]
    for one in (lance, milvus):
        assert one["values"]["ann_recall"] == 1
        assert one["values"]["build_s"] > 0
        assert one["values"]["index_bytes"] > 1000
    assert text["values"]["ann_recall"] is None
    assert text["values"]["recall@3"] > 0
    assert "computed: nothing" in harness(folder, "run", "x.yaml", "--no-mlflow").stdout


def test_unused_indexes_are_removed(folder: Path) -> None:
    """From the databases, too, and only when nothing uses them; one that is gone is built again."""
    harness(project(folder), "run", "x.yaml", "--no-mlflow")
    indexes = folder / ".harness/indexes"
    assert len(list((indexes / "lancedb").iterdir())) == 2
    assert len(list((indexes / "milvus").glob("*.db"))) == 1
    assert "would remove 0 items" in harness(folder, "store", "prune", "--older", "0").stdout
    project(folder, "{dense: {depth: 5}}, {lancedb: {depth: 4}}")
    harness(folder, "run", "x.yaml", "--no-mlflow")
    assert "databases" in harness(folder, "store", "show").stdout
    harness(folder, "store", "prune", "--older", "0", "--yes")
    assert len(list((indexes / "lancedb").iterdir())) == 1
    assert not list((indexes / "milvus").glob("*.db"))
    (table,) = (indexes / "lancedb").iterdir()
    table.rename(folder / "moved")
    project(folder, "{lancedb: {depth: 5}}")
    again = harness(folder, "run", "x.yaml", "--no-mlflow").stdout
    assert "computed: 1 retrieve" in again
    assert results(folder)[0]["values"]["ann_recall"] == 1


def test_databases_that_are_gone_are_no_obstacle(folder: Path) -> None:
    """Everything else is removed; an index in a database at another address has a record of its own."""
    project(folder, "{dense: {depth: 5}}, {lancedb: {depth: 5}}, {milvus: {depth: 5, uri: 'http://127.0.0.1:9'}}")
    harness(folder, "run", "x.yaml", "--no-mlflow", code=2)
    project(folder, "{dense: {depth: 5}}, {milvus: {depth: 5, uri: 'http://127.0.0.1:10'}}")
    harness(folder, "run", "x.yaml", "--no-mlflow", code=2)
    project(folder, "{dense: {depth: 5}}")
    harness(folder, "run", "x.yaml", "--no-mlflow")
    assert len(list((folder / ".harness/databases").glob("*.json"))) == 3
    done = harness(folder, "store", "prune", "--older", "0", "--yes", code=2)
    one_line(done, "cannot be used")
    assert "all else is removed, but for 1 other index" in done.stderr
    assert len(list((folder / ".harness/databases").glob("*.json"))) == 2
    assert not list((folder / ".harness/indexes/lancedb").iterdir())


SERVERS = {"milvus": milvus_server, "pgvector": postgres_server, "chroma": chroma_server}


@pytest.fixture(params=SERVERS)
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Any]]:
    with SERVERS[request.param](tmp_path / "served") as found:
        yield request.param, found


def test_a_server_that_is_killed(folder: Path, served: tuple[str, Any]) -> None:
    """One line, without a traceback; when it is back, the next run goes on from what is stored."""
    name, server = served
    database = f"{{{name}: {{depth: 5, uri: '{server.url}'}}}}"
    project(folder, f"{{dense: {{depth: 5}}}}, {database}")
    server.kill()
    done = harness(folder, "run", "x.yaml", "--no-mlflow", code=None)
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert f"retriever {name}: {server.url} cannot be used" in last
    assert "1 of 2 trials are not scored" in last
    server.start()
    again = harness(folder, "run", "x.yaml", "--no-mlflow")
    assert "computed: 1 index, 1 retrieve, 1 select, 1 score" in again.stdout
    dense, found = results(folder)
    assert dense["mean"] == found["mean"]
    # The index is built, and searched again with another depth, when the server dies.
    project(folder, database.replace("depth: 5", "depth: 4"))
    server.kill()
    one_line(
        harness(folder, "run", "x.yaml", "--no-mlflow", code=None), f"retriever {name}: {server.url} cannot be used"
    )
    server.start()
    assert "computed: 2 retrieve, 1 select, 1 score" in harness(folder, "run", "x.yaml", "--no-mlflow").stdout
    # Nothing is left of an index that no launch uses.
    project(folder, "{dense: {depth: 5}}")
    harness(folder, "run", "x.yaml", "--no-mlflow")
    assert list((folder / ".harness/databases").glob("*.json"))
    harness(folder, "store", "prune", "--older", "0", "--yes")
    assert not list((folder / ".harness/databases").glob("*.json"))


@pytest.mark.parametrize("database", ["lancedb", "milvus"])
def test_a_launch_that_is_killed_while_it_builds(folder: Path, database: str) -> None:
    """What it has left in the database is replaced."""
    project(folder, f"{{{database}: {{depth: 5}}}}")
    process = started(folder, "run", "x.yaml", "--no-mlflow")
    records = folder / ".harness/databases"
    until = time.monotonic() + 60
    while not list(records.glob("*.json")) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    harness(folder, "run", "x.yaml", "--no-mlflow")
    (found,) = results(folder)
    assert found["values"]["ann_recall"] == 1


def test_a_missing_package(folder: Path) -> None:
    """One line, before any work, that says what to install."""
    (folder / "sitecustomize.py").write_text("import sys\nsys.modules['lancedb'] = None\n")
    project(folder, "{lancedb: {depth: 5}}")
    done = harness(folder, "run", "x.yaml", "--no-mlflow", code=None, PYTHONPATH=str(folder))
    one_line(done, "retriever lancedb: lancedb is missing; pip install 'retrieval-harness[lancedb]'")


@pytest.mark.parametrize(
    ("source", "form", "queries", "differing"),
    [("beir-scifact", "beir", "test", 3), ("chroma-chunking", "chroma", "", 5)],
)
def test_flat_search_on_public_data(
    shared: Callable[[str], Path], tmp_path: Path, source: str, form: str, queries: str, differing: int
) -> None:
    """The rankings of `dense` for all but a few queries, in which scores that are rounded to five decimals differ."""
    import_dataset(form, shared(source), tmp_path / "data")
    queries = queries or next(iter(read_manifest(tmp_path / "data").queries))
    with postgres_server(tmp_path / "postgres") as postgres, chroma_server(tmp_path / "chroma") as chroma:
        flat: list[BaseRetriever] = [Dense(50), Lancedb(50), Milvus(50), Pgvector(50, uri=postgres.url)]
        graphs = [Pgvector(50, "hnsw", ef_search=1000, uri=postgres.url), Chroma(50, ef_search=1000, uri=chroma.url)]
        data = {"data": str(tmp_path / "data"), "queries": queries}
        base = Trial(chunker=Fixed(256), retriever=Dense(50), embedder=Hashing(), metrics=("recall@5",), **data)
        experiment = Experiment("public", base, {"retriever": [*flat, *graphs]})
        launch = run(experiment, store=tmp_path / "store", log=False)
    assert launch.session is not None
    outputs = [launch.session.outputs(trial) for trial in launch.session.trials]
    expected, *found = [read_rankings(one.rankings) for one in outputs[: len(flat)]]
    for ranked in found:
        rows = range(expected.queries)
        same = [ranked.row(at)[0].tolist() == expected.row(at)[0].tolist() for at in rows]
        assert same.count(False) <= differing
        for at in rows:
            assert ranked.row(at)[1] == pytest.approx(expected.row(at)[1], abs=2e-5)
    recall = [result.efficiency["ann_recall"] for result in launch.results[1:]]
    assert all(share > 0.9999 for share in recall[: len(found)])
    assert all(share > 0.9 for share in recall[len(found) :])
