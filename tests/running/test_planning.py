"""Plans: how long a launch takes on so many workers, what moves, and what timing a sample of the data tells."""

import re
from pathlib import Path

import pytest
from project import harness, one_line

from harness import plan, read_experiment
from harness.running.planning.cluster_estimate import ClusterEstimate
from harness.running.planning.sample_timing import Size, extrapolated
from harness.running.planning.time_estimate import TimeEstimate
from harness.running.session import Session
from harness.running.stages.embed import pace_kind
from harness.storage.paces import Paces

GRID = """
name: garden
data: garden
tokenizer: words
chunker: {fixed: {size: 20}}
embedder: {hashing: {dimensions: 64}}
metrics: [recall@3]
grid:
  chunker: [fixed: {size: 20}, fixed: {size: 40}]
  retriever: [bm25, dense]
  selector: [[{top_k: {k: 2}}], [{top_k: {k: 3}}]]
"""


@pytest.fixture
def study(garden_data: Path, tmp_path: Path) -> Path:
    (tmp_path / "x.yaml").write_text(GRID)
    return tmp_path / "x.yaml"


def with_paces(study: Path, **seconds: float) -> Session:
    """A session in whose store a stage of each name took so many seconds, and wrote 1,000 bytes."""
    session = Session(read_experiment(study), study.parent / "s")
    paces = Paces(session.store)
    for name in ("tokenize", "chunk", "augment", "index", "retrieve", "select", "score"):
        paces.note(f"stage {name}", session.corpus_bytes, seconds.get(name, 0.0))
        paces.note(f"bytes {name}", session.corpus_bytes, 1000)
    paces.note(pace_kind(session.trials[0].embedder), 1000, seconds.get("embed", 0.0))
    paces.note(f"dimensions {pace_kind(session.trials[0].embedder)}", 1, 64)
    paces.save()
    return session


def estimate(study: Path, workers: int) -> ClusterEstimate:
    made = plan(read_experiment(study), store=study.parent / "s", workers=workers).cluster
    assert made is not None
    return made


def test_wall_time_is_that_of_the_tasks_in_their_order(study: Path) -> None:
    """8 scores of 1 s after 4 rankings of 2 s: 16 s on one worker; on two, 2 + 2 + 4 s; on eight, 2 + 1 s.

    Index, select and augment stages are made with the tasks that need them.
    """
    with_paces(study, retrieve=2, score=1)
    walls = {workers: estimate(study, workers).wall for workers in (1, 2, 8, 100)}
    assert walls == pytest.approx({1: 16, 2: 8, 8: 3, 100: 3})
    assert estimate(study, 8).usd(3.0) == pytest.approx(8 * 3 / 3600 * 3)


def test_models_are_shared_among_the_workers(study: Path) -> None:
    """The time of embedding is divided by the number of workers, as texts are independent."""
    with_paces(study, embed=1)
    alone = estimate(study, 1).wall
    assert alone
    assert estimate(study, 4).wall == pytest.approx(alone / 4)


def test_a_pace_that_is_not_known(study: Path) -> None:
    """No wall time, no dollars and no bytes are invented."""
    made = estimate(study, 4)
    assert (made.wall, made.usd(1.0), made.traffic) == (None, None, None)
    assert made.time.unknown == ["other stages", "embedding with hashing"]


def test_bytes_that_move(study: Path) -> None:
    """Written: what is not stored. Read: each artifact by each worker at most once."""
    session = with_paces(study)
    one, many = estimate(study, 1).traffic, estimate(study, 100).traffic
    assert one
    assert many
    folder = session.manifest.root
    assert one.data == sum((folder / name).stat().st_size for name in ("corpus.jsonl", "queries/validation.jsonl"))
    texts = plan(read_experiment(study), store=study.parent / "s").texts["hashing"]
    # The plan has chunked the corpus: tokens and chunks are stored. 2 augment, 4 retrieve, 8 select, 8 score.
    assert one.written == many.written == 22 * 1000 + texts * (4 * 64 + 33)
    assert one.read < many.read


def test_what_a_stage_takes_is_extrapolated() -> None:
    """From samples: 2 + 3·documents + 5·queries + 7·documents·queries, in units of 100 documents and 10 queries."""
    sizes = [(documents, queries) for documents in (100, 400) for queries in (10, 40)]

    def taken(documents: int, queries: int) -> float:
        d, q = documents / 100, queries / 10
        return 2 + 3 * d + 5 * q + 7 * d * q

    whole = Size(8000, 300)
    found = extrapolated([(Size(*size), taken(*size)) for size in sizes], whole)
    assert found == pytest.approx(taken(*whole))


def test_noise_never_makes_it_less_than_nothing() -> None:
    """A larger sample that happened to be quicker does not make the whole quicker still."""
    values = [((100, 10), 1.0), ((100, 40), 0.9), ((400, 10), 0.9), ((400, 40), 0.8)]
    assert extrapolated([(Size(*size), taken) for size, taken in values], Size(8000, 300)) == pytest.approx(0.9)


def test_a_sample_is_timed(study: Path) -> None:
    """Without any earlier launch: everything is known then, and only the paces are left in the store."""
    folder = study.parent
    harness(folder, "plan", "x.yaml", "--store", "s")
    before = {path.name for path in (folder / "s/objects").glob("*/*")}
    out = harness(folder, "plan", "x.yaml", "--store", "s", "--time", "--workers", "3", "--usd-per-hour", "36").stdout
    assert "not measured" not in out
    assert re.search(r"^retrieve +4 ", out, re.MULTILINE)
    assert re.search(
        r"^on 3 workers: about \d+ s of computing, \$0\.\d{4} at \$36 per worker and hour$", out, re.MULTILINE
    )
    assert re.search(r"^bytes that move: [\d.]+ kB of data to each worker", out, re.MULTILINE)
    assert {path.name for path in (folder / "s/objects").glob("*/*")} == before
    assert not (folder / "s/samples").exists()
    again = harness(folder, "plan", "x.yaml", "--store", "s", "--workers", "3").stdout
    assert "not measured" not in again
    assert "on 3 workers: about" in again


def test_timing_asks_no_model(study: Path, cross_encoder: Path) -> None:
    """Steps of language models are left out; a local reranker is timed on a few pairs."""
    written = GRID.replace("[{top_k: {k: 3}}]", f"[rerank: {{model: {cross_encoder}, k: 3}}]")
    study.write_text(f"{written}augmenter: {{summary: {{model: gpt-4o-mini}}}}\n")
    out = harness(study.parent, "plan", "x.yaml", "--store", "s", "--time").stdout
    assert re.search(r"^reranking with rerank \(.*\) \(at most\) +\d+ +[<\d.]+", out, re.MULTILINE)
    assert "not measured here yet: calls to models" in out
    assert "on 1 worker: not known, as calls to models were not timed\n" in out


def test_a_price_that_is_none(study: Path) -> None:
    """One line."""
    done = harness(study.parent, "plan", "x.yaml", "--usd-per-hour", "-1", code=None)
    one_line(done, "--usd-per-hour -1: expected dollars, such as 0.40")


def test_places_and_workers_that_cannot_be_meant(study: Path) -> None:
    """One line, as for a run; nothing is opened."""
    for place, said in (
        ("nonsense", "--on nonsense: No module named 'nonsense'"),
        ("dask://", "--on dask://: expected dask://HOST:PORT, or dask://local"),
    ):
        one_line(harness(study.parent, "plan", "x.yaml", "--on", place, code=None), said)
    one_line(
        harness(study.parent, "plan", "x.yaml", "--workers", "0", code=None), "workers: expected at least 1, got 0"
    )


def test_nothing_left_to_do(study: Path) -> None:
    """No table."""
    harness(study.parent, "run", "x.yaml", "--store", "s", "--no-mlflow")
    out = harness(study.parent, "plan", "x.yaml", "--store", "s", "--time", "--workers", "4").stdout
    assert out.endswith("time: nothing left to compute\n")
    assert str(TimeEstimate()) == "time: nothing left to compute"
