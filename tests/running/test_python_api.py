"""What Python users do with a launch: data frames, short representations, paths as text."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import harness
from harness import Launch, RunOptions, read_experiment, run
from harness.running import launch as launching

EXPERIMENT = """
name: garden
data: garden
tokenizer: words
chunker: {fixed: {size: 20}}
retriever: {bm25: {depth: 4}}
selector: [{top_k: {k: 2}}]
metrics: [recall@2, mrr]
grid:
  chunker.size: [20, 40]
judges: [heuristic_recall]
"""


@pytest.fixture
def launch(garden_data: Path, tmp_path: Path) -> Launch:
    (tmp_path / "garden.yaml").write_text(EXPERIMENT)
    return run(read_experiment(str(tmp_path / "garden.yaml")), log=False, store=str(tmp_path / "store"))


def test_a_row_per_trial(launch: Launch) -> None:
    """What varies, the means, and the costs."""
    frame = launch.frame()
    assert list(frame.index) == [result.name for result in launch.results]
    assert list(frame["chunker.size"]) == ["20", "40"]
    assert "chunker" not in frame.columns
    assert list(frame["recall@2"]) == [result.mean("recall@2") for result in launch.results]
    assert list(frame["heuristic_recall"]) == [result.mean("heuristic_recall") for result in launch.results]
    assert (frame["latency_p50_ms"] > 0).all()


def test_a_row_per_query(launch: Launch) -> None:
    """Means over its rows are those of the trials."""
    frame = launch.per_query()
    assert list(frame.columns) == ["trial", "query", "cluster", *launch.metrics]
    assert len(frame) == sum(len(result.queries) for result in launch.results)
    means = frame.groupby("trial")["mrr"].mean()
    for result in launch.results:
        assert means[result.name] == pytest.approx(result.mean("mrr"), abs=1e-15)


def test_a_row_per_hit(launch: Launch) -> None:
    """Ranks begin at 1 for each query, and scores do not rise; the first hits are the selected passages."""
    frame = launch.rankings()
    for _, hits in frame.groupby(["trial", "query"], sort=False):
        assert list(hits["rank"]) == list(range(1, len(hits) + 1))
        assert len(hits) <= 4
        assert (np.diff(hits["score"]) <= 0).all()
    assert launch.session is not None
    outputs = launch.session.outputs(launch.session.trials[0])
    first = frame[(frame["trial"] == launch.results[0].name) & (frame["query"] == outputs.queries[0].id)]
    kept = outputs.selections.kept(0)
    assert [(p.doc, p.start, p.end) for p in kept] == list(
        zip(first["doc"], first["start"], first["end"], strict=True)
    )[:2]


def test_short_representations(launch: Launch) -> None:
    """A line each, not thousands of numbers."""
    assert repr(launch).startswith(f"<Launch {launch.id} of 'garden': {launch.primary} {{'")
    assert len(repr(launch)) < 300
    assert repr(launch.results[0]) == f"<TrialResult '{launch.results[0].name}': 13 queries, 44 metrics>"


def test_options_are_one_list() -> None:
    """The options that type checkers see are those that `run` takes; `dir` shows the API."""
    assert list(RunOptions.__annotations__) == [field.name for field in fields(launching._Options)]
    assert {"run", "RunOptions", "Launch", "compare"} <= set(dir(harness))


def test_run_logs_a_report(garden_data: Path, tmp_path: Path) -> None:
    """As the command line does, unless told not to."""
    from mlflow import MlflowClient

    (tmp_path / "garden.yaml").write_text(EXPERIMENT)
    experiment, uri = read_experiment(tmp_path / "garden.yaml"), f"sqlite:///{tmp_path}/mlflow.db"
    client = MlflowClient(uri)
    for options, files in (({}, True), ({"report": None}, False)):
        launch = run(experiment, store=tmp_path / "store", tracking=uri, **options)  # type: ignore[typeddict-item]
        (logged,) = client.search_runs(["1"], f"tags.kind = 'launch' and tags.launch = '{launch.id}'")
        names = {file.path for file in client.list_artifacts(logged.info.run_id)}
        assert ("report.html" in names) is files
        assert launch.links
