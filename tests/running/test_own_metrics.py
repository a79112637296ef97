"""A researcher's own metrics: named in YAML, cut to ranks and budgets, checked, compared and logged like others."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from messages import without_line

from harness import ConfigError, Experiment, compare, read_experiment, run

EXPERIMENT = """
name: own
data: small
tokenizer: words
chunker: {paragraph: {}}
retriever: {bm25: {depth: 5}}
selector: [{top_k: {k: 3}}]
metrics: %s
compare: {on: "%s"}
"""
METRICS = '''
from dataclasses import dataclass
from harness.components import Metric, Selected

@dataclass(frozen=True)
class Letters(Metric):
    """How many of the passages hold a letter; None for a query that says so."""

    letter: str = "a"

    def value(self, selected: Selected) -> float | None:
        if selected.query.metadata.get("skip"):
            return None
        assert len(selected.passages) == len(selected.relevant)
        assert len(selected.found) == len(selected.query.evidence)
        return sum(self.letter in passage.text for passage in selected.passages)

@dataclass(frozen=True)
class Recall(Metric):
    def value(self, selected: Selected) -> float:
        return 1.0

@dataclass(frozen=True)
class Chunks(Recall):
    pass

@dataclass(frozen=True)
class HeuristicRecall(Recall):
    pass

@dataclass(frozen=True)
class Métrica(Recall):
    pass

@dataclass(frozen=True)
class Huge(Metric):
    def value(self, selected: Selected) -> float:
        return 10 ** 400

@dataclass(frozen=True)
class Endless(Metric):
    def value(self, selected: Selected) -> float:
        return float("inf")

@dataclass(frozen=True)
class Greedy(Metric):
    def value(self, selected: Selected) -> float:
        selected.passages.clear()
        return 0.0

@dataclass(frozen=True)
class Found(Metric):
    """The number of evidence items that the passages contain: by definition recall x items."""

    def value(self, selected: Selected) -> float | None:
        return sum(rank is not None for rank in selected.found) if selected.query.evidence else None
'''


@pytest.fixture
def own(make_data: Callable[..., Path], tmp_path: Path) -> Callable[..., Experiment]:
    """An experiment on one document of three paragraphs, all of which every query retrieves."""
    text = "alpha beta one\n\ngamma delta one\n\nepsilon bend one"
    documents = [{"id": "d", "text": text}]
    queries = [
        {"id": "q1", "text": "one alpha", "evidence": [{"doc": "d", "start": 0, "end": 14}]},
        {"id": "q2", "text": "one", "metadata": {"skip": True}},
    ]
    make_data(documents, queries, name="small")
    (tmp_path / "mine.py").write_text(METRICS)

    def experiment(metrics: str, on: str = "recall") -> Experiment:
        (tmp_path / "own.yaml").write_text(EXPERIMENT % (metrics, on))
        return read_experiment(tmp_path / "own.yaml")

    return experiment


def scores(experiment: Experiment, tmp_path: Path, **options: Any) -> dict[str, list[float]]:
    (result,) = run(experiment, log=False, store=tmp_path / "store", **options).results
    return {name: values.tolist() for name, values in result.scores.items()}


def test_values_with_cutoffs(own: Callable[..., Experiment], tmp_path: Path) -> None:
    """All three paragraphs hold an "a" but the last; the best one comes first, and has three tokens."""
    experiment = own("[mine.py:Letters, 'mine.py:Letters@1', 'mine.py:Letters@3t', 'mine.py:Letters@5t', recall]")
    assert experiment.metrics == ("letters", "letters@1", "letters@3t", "letters@5t", "recall")
    found = scores(experiment, tmp_path)
    assert [found[name][0] for name in experiment.metrics[:4]] == [2, 1, 1, 2]
    assert all(np.isnan(found[name][1]) for name in experiment.metrics)
    # Workers read the class from its file.
    assert str(scores(experiment, tmp_path / "workers", workers=2)) == str(found)


def test_settings_are_part_of_the_trial(own: Callable[..., Experiment], tmp_path: Path) -> None:
    """As of any component: in its params, its identity and the address of its scores."""
    plain, other = (own(f"[{entry}, recall]") for entry in ("mine.py:Letters", "mine.py:Letters: {letter: o}"))
    assert scores(plain, tmp_path)["letters"][0] == 2
    assert scores(other, tmp_path)["letters"][0] == 3
    # They hold for all entries of the class.
    both = own("['mine.py:Letters@1', mine.py:Letters: {letter: o}, recall]")
    assert [scores(both, tmp_path)[name][0] for name in ("letters@1", "letters")] == [1, 3]
    assert len(both.base.own_metrics) == 1
    (trial,) = other.trials()
    assert trial.params()["metric.letters.letter"] == "o"
    assert trial.identity()["own_metrics"][0]["source"]
    assert json.loads(trial.to_json())["own_metrics"][0] == {f"{tmp_path}/mine.py:Letters": {"letter": "o"}}
    assert type(trial).from_json(trial.to_json()) == trial
    assert "own_metrics" not in own("[recall]").trials()[0].identity()


def test_found_is_what_recall_counts(own: Callable[..., Experiment], tmp_path: Path) -> None:
    """A metric sees the same matches as the built-in ones, at every cutoff."""
    found = scores(
        own("['mine.py:Found@1', 'mine.py:Found@3t', 'mine.py:Found', recall@1, recall@3t, recall]"), tmp_path
    )
    for cutoff in ("@1", "@3t", ""):
        assert found[f"found{cutoff}"][0] == found[f"recall{cutoff}"][0]


def test_compared_and_logged(own: Callable[..., Experiment], tmp_path: Path) -> None:
    """Trials are compared on it, and MLflow has its mean under the name of the metric."""
    from mlflow import MlflowClient

    uri = f"sqlite:///{tmp_path}/mlflow.db"
    launch = run(own("['mine.py:Letters@1', recall]", "letters@1"), store=tmp_path / "store", tracking=uri)
    assert compare(launch).metric == "letters@1"
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("own")
    assert experiment is not None
    (logged,) = client.search_runs([experiment.experiment_id], "tags.kind = 'trial'")
    assert logged.data.metrics["letters_01"] == 1
    assert logged.data.params["metric.letters.letter"] == "a"


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("[mine.py:Recall]", "metrics[0]: 'recall' is the name of a built-in metric; rename the class"),
        ("[mine.py:Missing]", "has no class Missing"),
        ("[mine.py:Letters: {digit: 3}]", "letters has no setting 'digit'"),
        ("[mine.py:Letters: {letter: o}, mine.py:Letters: {letter: b}]", "metrics[1]: two metrics are named 'letters'"),
        ("['mine.py:Letters@0.5']", "metric 'letters@0.5': write letters@5 for a rank"),
        ("[letters]", "metrics[0]: no metric named 'letters'"),
        ("[mine.py:Chunks]", "metrics[0]: 'chunks' is the name of a fact reported with every trial"),
        ("[mine.py:HeuristicRecall]\njudges: [heuristic_recall]", "'heuristic_recall' is also the name of a judge's"),
        ("[mine.py:Métrica]", "metrics[0]: 'métrica' cannot name a metric; use ASCII letters and digits"),
        ("['mine.py:Letters@1': 0]", "expected a mapping of settings, got 0"),
        ("[recall: {k: 3}]", "metrics[0]: recall takes no settings"),
        ("[[recall]]", "metrics[0]: expected a name such as recall@5, or file.py:Class with settings"),
        ("recall", "metrics: expected a list of names such as recall@5"),
    ],
)
def test_mistakes_in_the_file(own: Callable[..., Experiment], metrics: str, message: str) -> None:
    """One line that names the entry."""
    with pytest.raises(ConfigError) as caught:
        own(metrics)
    assert message in str(caught.value)
    assert without_line(caught.value).startswith("own.yaml: ")


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("Endless", "metric endless: query 'q1': returned inf; expected a finite number, or None"),
        ("Huge", "metric huge: query 'q1': returned 1000"),
        ("Greedy", "metric greedy: query 'q1': changes a list it was given"),
    ],
)
def test_mistakes_in_the_class(own: Callable[..., Experiment], tmp_path: Path, metric: str, message: str) -> None:
    """One line that names the metric and the query."""
    with pytest.raises(ConfigError) as caught:
        scores(own(f"[mine.py:{metric}, recall]"), tmp_path)
    assert message in str(caught.value)


def test_names_where_references_are_not_read(own: Callable[..., Experiment]) -> None:
    """Outside `metrics:` in YAML, a metric goes by its name; the message says so."""
    with pytest.raises(
        ConfigError, match="compare.on: no metric named 'mine.py:Letters@1'; here your own metrics go by"
    ):
        own("[mine.py:Letters, recall]", "mine.py:Letters@1")
    trial = replace(own("[recall]").base, metrics=("recall", "mine.py:Letters"))
    with pytest.raises(ConfigError, match="python: metrics: name your own metrics by their names, and give the"):
        Experiment("x", trial).trials()
