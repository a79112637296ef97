"""A part of an experiment: which trials and queries, and that it is marked everywhere and used by the whole."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from project import FIRST, harness, one_line, project

from harness import ConfigError, Experiment, accept_launch, gate, read_experiment, run
from harness.data.dataset import sample
from harness.experiment.part import part_of

EXPERIMENT = (
    FIRST.replace("name: first", "name: parts")
    + """\
notes: Try **this**.
tags: {team: search, ticket: 7}
grid:
  chunker: [fixed: {size: 20}, fixed: {size: 40}, recursive: {size: 20}]
  retriever: [bm25: {depth: 5}, dense: {depth: 5}]
compare: {baseline: {chunker: fixed, chunker.size: 20, retriever: bm25}}
"""
)


@pytest.fixture
def file(garden_data: Path, tmp_path: Path) -> Path:
    (tmp_path / "x.yaml").write_text(EXPERIMENT)
    return tmp_path / "x.yaml"


def test_trials_keep_their_names(file: Path) -> None:
    """Those of the whole grid, although less varies; the baseline is the first if it is left out."""
    part = part_of(read_experiment(file), {"chunker": "recursive"})
    assert part.partial == "2 of 6 trials"
    assert part.trial_set is not None
    assert list(part.trial_set.names) == ["recursive · bm25", "recursive · dense"]
    assert not part.compare.baseline
    assert part_of(read_experiment(file), {"retriever": "bm25"}).compare.baseline
    assert part_of(read_experiment(file)).partial == ""
    assert part_of(read_experiment(file), {"chunker": "Recursive"}).partial == "2 of 6 trials"
    assert part_of(read_experiment(file), {"chunker": "chunkers.py:Recursive"}).partial == "2 of 6 trials"


def test_nothing_matches(file: Path) -> None:
    """The message lists what there is."""
    with pytest.raises(ConfigError, match="filter: no trial has chunker: recursve. Did you mean 'recursive'"):
        part_of(read_experiment(file), {"chunker": "recursve"})
    with pytest.raises(ConfigError, match="filter: no param 'chunkr'. Did you mean 'chunker'"):
        part_of(read_experiment(file), {"chunkr": "fixed"})
    with pytest.raises(ConfigError, match="limit: expected at least 1 query, got 0"):
        part_of(read_experiment(file), limit=0)


def test_a_larger_sample_contains_a_smaller_one(file: Path, tmp_path: Path) -> None:
    """In the order of the file, and the same in every run."""
    launch = run(part_of(read_experiment(file), limit=5), store=tmp_path / "s", log=False)
    assert launch.session is not None
    queries = launch.session.outputs(launch.session.trials[0]).queries
    wider = sample(queries, 9)  # type: ignore[type-var]
    assert len(queries) == 5
    assert [query.id for query in sample(wider, 5)] == [query.id for query in queries]  # type: ignore[type-var]


def test_a_part_is_used_by_the_whole(file: Path, tmp_path: Path) -> None:
    """Of two trials on five queries: chunks, index and vectors are there; other queries are searched."""
    study = read_experiment(file)
    first = run(part_of(study, {"chunker": "recursive"}, limit=5), store=tmp_path / "s", log=False)
    whole = run(study, store=tmp_path / "s", log=False)
    again = run(study, store=tmp_path / "t", log=False)
    assert first.work["chunk"] == 1
    assert whole.work["chunk"] == again.work["chunk"] - 1 == 2
    assert whole.work["embed"] < again.work["embed"]
    for one, other in zip(whole.results, again.results, strict=True):
        for name in one.scores:
            assert np.array_equal(one.scores[name], other.scores[name], equal_nan=True)
    filtered = run(part_of(study, {"chunker": "recursive"}), store=tmp_path / "s", log=False)
    assert not filtered.work  # trials on all queries are those of the whole
    assert [one.fingerprint for one in filtered.results] == [one.fingerprint for one in whole.results[4:]]


def test_it_is_marked_everywhere(file: Path, tracking: str) -> None:
    """In the terminal, report, JSON, CSV, MLflow and the record of the launch."""
    from mlflow import MlflowClient

    folder = file.parent
    given = ("--filter", "chunker=recursive", "--limit", "5")
    out = harness(folder, "run", "x.yaml", *given, "--tag", "who=ada", "--tracking", tracking).stdout
    words = "2 of 6 trials, at most 5 queries"
    assert f"PARTIAL ({words})" in out
    assert f"Partial run, {words}: On 4 queries" in out  # one of the five has no evidence
    client = MlflowClient(tracking)
    runs = client.search_runs([client.get_experiment_by_name("parts").experiment_id])
    launch = next(run for run in runs if run.data.tags["kind"] == "launch")
    trials = [run for run in runs if run.data.tags["kind"] == "trial"]
    assert launch.data.tags["partial"] == words
    assert "(partial)" in launch.info.run_name
    assert launch.data.tags["mlflow.note.content"].startswith("Try **this**.")
    for one in (launch, *trials):
        assert (one.data.tags["team"], one.data.tags["ticket"], one.data.tags["who"]) == ("search", "7", "ada")
    assert {run.data.tags["partial"] for run in trials} == {"at most 5 queries"}
    assert {run.data.params["limit"] for run in trials} == {"5"}
    harness(folder, "report", "parts", "--out", "r.html")
    assert words in (folder / "r.html").read_text()
    assert json.loads(harness(folder, "compare", "x.yaml", *given, "--json").stdout)["partial"] == words
    assert f",{words}" in harness(folder, "compare", "parts", "--csv").stdout.replace('"', "")
    one_line(harness(folder, "compare", "x.yaml", code=None), "6 of 6 trials", "name 'parts' instead", words)


def test_a_part_is_no_baseline(file: Path, tmp_path: Path) -> None:
    """It is not accepted, not compared with a baseline, and does not open the locked set."""
    part = part_of(read_experiment(file), limit=5)
    for work in (lambda: accept_launch(part, why="x", store=tmp_path), lambda: gate(part, store=tmp_path)):
        with pytest.raises(ConfigError, match="gate: parts is part of an experiment .at most 5 queries."):
            work()
    with pytest.raises(ConfigError, match="--final: the locked query set is for the whole experiment"):
        run(part, store=tmp_path, final=True, log=False)


@pytest.mark.parametrize(
    ("tags", "what"),
    [
        ("[a]", "tags: expected a mapping"),
        ("{kind: x}", "tags: 'kind' is a tag that the harness or MLflow writes"),
        ("{mlflow.runName: x}", "tags: 'mlflow.runName' is a tag"),
        ("{'a:b': x}", "tags: 'a:b': expected a name of letters"),
        ("{a: [1]}", "tags: a: expected a text"),
    ],
)
def test_tags_that_cannot_be_logged(tmp_path: Path, tags: str, what: str) -> None:
    """Refused when the file is read, with the line."""
    (tmp_path / "x.yaml").write_text(f"name: n\ndata: d\nchunker: fixed\nretriever: bm25\ntags: {tags}\n")
    with pytest.raises(ConfigError) as caught:
        read_experiment(tmp_path / "x.yaml")
    assert str(caught.value).startswith(f"x.yaml:5: {what}")


def test_the_reserved_tags_are_those_that_are_written(garden_data: Path, tmp_path: Path, tracking: str) -> None:
    """Of a launch and its trials, but for those of MLflow; those of a comparison take precedence over a user's."""
    from mlflow import MlflowClient

    from harness.experiment.tags import RESERVED
    from reports.comparison_columns import tagged

    project(tmp_path, None)
    harness(tmp_path, "run", "x.yaml", "--tracking", tracking)
    client = MlflowClient(tracking)
    found = client.search_runs([client.get_experiment_by_name("attacked").experiment_id])
    written = {tag for run in found for tag in run.data.tags if not tag.startswith(("mlflow.", "env."))}
    assert written - {column.name for column in tagged()} <= RESERVED


def test_the_python_way(garden_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`run(part_of(experiment, ...))`; the launch says what it is."""
    (tmp_path / "x.yaml").write_text(EXPERIMENT)
    made: Callable[[], Experiment] = lambda: part_of(read_experiment(tmp_path / "x.yaml"), limit=2)  # noqa: E731
    launch = run(made(), store=tmp_path / "s", log=False)
    assert any("partial run (at most 2 queries)" in warning for warning in launch.warnings)
