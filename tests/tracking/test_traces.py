"""Queries as MLflow traces: passages, what was dropped, scores and judgments, for the best trial and the baseline."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import Experiment, run
from harness.core.errors import ConfigError
from harness.experiment.yaml_file import read_experiment
from reports import launch_report


@pytest.fixture
def logged(study: Experiment, tracking: str, tmp_path: Path) -> Any:
    """Runs the study with at most so many traces; returns the launch, the traces by run name, and the client."""
    from mlflow import MlflowClient

    def logged(traces: int) -> tuple[Any, dict[str, list[Any]], Any]:
        made = replace(study, traces=traces)
        launch = run(made, store=tmp_path / "store", tracking=tracking, report=launch_report)
        client = MlflowClient(tracking)
        found = client.get_experiment_by_name("beds")
        runs = {one.info.run_id: one.info.run_name for one in client.search_runs([found.experiment_id])}
        by_run: dict[str, list[Any]] = {}
        for trace in client.search_traces(locations=[found.experiment_id], max_results=500):
            by_run.setdefault(runs[trace.info.trace_metadata["mlflow.sourceRun"]], []).append(trace)
        return launch, by_run, client

    return logged


def test_the_best_trial_and_the_baseline(logged: Any) -> None:
    """A trace for each query, with what the per-query records say."""
    launch, traces, _ = logged(200)
    best = max(launch.results, key=lambda result: (result.mean(launch.metrics[0]), result.name))
    assert set(traces) == {best.name, launch.results[0].name}
    assert all(len(found) == len(best.queries) == 13 for found in traces.values())
    rows = {row["query_id"]: row for row in launch.session.outputs(launch.session.trials[0]).rows()}
    for trace in traces[launch.results[0].name]:
        row = rows[trace.info.tags["query_id"]]
        root, retrieved, *dropped = trace.data.spans
        assert trace.info.request_preview == row["query"]
        assert (root.inputs, root.span_type) == ({"query": row["query"]}, "CHAIN")
        assert [one["page_content"] for one in retrieved.outputs] == [one["text"] for one in row["kept"]]
        assert (retrieved.span_type, retrieved.parent_id) == ("RETRIEVER", root.span_id)
        assert sum(len(one.outputs) for one in dropped) == len(row["dropped"])
        by_name: dict[str, list[Any]] = {}
        for one in trace.info.assessments:
            by_name.setdefault(one.name, []).append(one)
        marks = {int(one.metadata["chunk_index"]): one.feedback.value for one in by_name["retrieval_relevance"]}
        assert marks == {at: "yes" if one["relevant"] else "no" for at, one in enumerate(row["kept"])}
        assert all(one.span_id == retrieved.span_id for one in by_name["retrieval_relevance"])
        score = row["scores"]["recall@3"]
        assert [one.feedback.value for one in by_name.get("recall_03", [])] == ([] if score is None else [score])
        places = [f"{one['doc']}:{one['start']}-{one['end']}: {one['outcome']}" for one in row["evidence"]]
        assert by_name["expected_evidence"][0].expectation.value == (places or ["none"])
    relevant = [trace.info.response_preview for trace in traces[best.name]]
    assert any(preview.startswith("✓ at ") for preview in relevant)


def test_each_query_once(logged: Any) -> None:
    """A second run adds nothing; one that wants more writes them; what a killed launch has left is replaced."""
    _, first, client = logged(5)
    assert {len(found) for found in first.values()} == {5}
    _, again, _ = logged(5)
    ids = {name: {trace.info.trace_id for trace in found} for name, found in first.items()}
    assert {name: {trace.info.trace_id for trace in found} for name, found in again.items()} == ids
    _, more, _ = logged(9)
    assert {len(found) for found in more.values()} == {9}
    source = next(iter(more.values()))[0].info.trace_metadata["mlflow.sourceRun"]
    client.delete_tag(source, "traces")
    _, repaired, _ = logged(9)
    assert {len(found) for found in repaired.values()} == {9}
    marks = [trace.info.assessments for found in repaired.values() for trace in found]
    assert all(len(one) == len({assessment.assessment_id for assessment in one}) for one in marks)
    indices = [[a.metadata["chunk_index"] for a in one if a.name == "retrieval_relevance"] for one in marks]
    assert all(len(one) == len(set(one)) for one in indices)


def test_none(logged: Any) -> None:
    """No trace, and no link to a page without any."""
    launch, traces, _ = logged(0)
    assert traces == {}
    (links,) = launch.logged.values()
    assert "Traces" not in links


def test_a_wrong_number(study: Experiment, tmp_path: Path) -> None:
    """One line."""
    (tmp_path / "x.yaml").write_text("name: x\ndata: garden\nchunker: fixed\nretriever: bm25\ntraces: many\n")
    with pytest.raises(ConfigError, match="traces: expected a number of queries, 0 for none, got 'many'"):
        read_experiment(tmp_path / "x.yaml")
