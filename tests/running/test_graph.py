"""The graph of what is left to do, and its execution: every distinct stage once, after its inputs, in few tasks."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from harness import read_experiment
from harness.core.errors import HarnessError
from harness.running.execution import Execution
from harness.running.executors import Engine, Serial
from harness.running.models import Models, answers_of
from harness.running.session import Session
from harness.running.stages.graph import Graph
from harness.running.stages.model_access import ModelAccess
from harness.running.stages.stage import StoredStage
from harness.running.stages.stage_json import read_stage, stage_json
from harness.storage.paces import Paces

ROOT = Path(__file__).parents[2]
GRID = """
name: garden
data: garden
tokenizer: words
chunker: {fixed: {size: 20}}
embedder: {hashing: {dimensions: 64}}
retriever: dense
metrics: [recall@3]
grid:
  chunker: [{fixed: {size: 20}}, {fixed: {size: 40}}]
  retriever: [bm25, hybrid]
  selector: [{top_k: {k: 2}}, {top_k: {k: 3}}, {top_k: {k: 4}}]
"""


class Recording(Engine):
    """Runs tasks in this process and records the stages of each."""

    def __init__(self) -> None:
        super().__init__(Serial(), 1)
        self.tasks: list[list[str]] = []

    def submit(self, task: Callable[..., Any], /, *arguments: Any, here: bool = False) -> Future[Any]:
        self.tasks.append([read_stage(text).name for text in arguments[0]])
        return super().submit(task, *arguments, here=here)


@pytest.fixture
def session(garden_data: Path, tmp_path: Path) -> Session:
    (tmp_path / "garden.yaml").write_text(GRID)
    return Session(read_experiment(tmp_path / "garden.yaml"), tmp_path / "store")


def executed(session: Session) -> tuple[Execution, Recording]:
    engine = Recording()
    caller = Models().caller(answers_of(session))
    execution = Execution(session.graph(), engine, ModelAccess(caller, None, lambda _: None, Paces(session.store)))
    execution.finish()
    return execution, engine


def kinds(graph: Graph) -> Counter[str]:
    return Counter(type(node.stage).__name__ for node in graph.nodes.values())


def test_distinct_stages_of_all_trials(session: Session) -> None:
    """Twelve trials on two chunkings: BM25 is searched once for each, alone and as a part of hybrid."""
    assert len(session.trials) == 12
    assert kinds(session.graph()) == {
        "Tokenize": 1,
        "Chunk": 2,
        "Contextualize": 2,
        "EmbedCorpus": 2,
        # bm25, dense and hybrid; the first two have an index, which is empty for dense search.
        "Retrieve": 6,
        "Index": 2,
        "Select": 12,
        "Score": 12,
    }


def test_inputs_come_first(session: Session) -> None:
    """The order of the nodes is an order in which they can be made."""
    seen: set[str] = set()
    for address, node in session.graph().nodes.items():
        assert set(node.inputs) <= seen
        seen.add(address)


def test_what_is_done_is_left_out(session: Session) -> None:
    """A launch leaves nothing; if scores are lost, they are all there is to do; then, all that only they need."""
    execution, _ = executed(session)
    assert execution.work.built["retrieve"] == 6
    assert execution.work.built["score"] == 12
    assert session.graph().nodes == {}
    again, engine = executed(session)
    assert (again.work.built, engine.tasks) == ({}, [])

    stages = session.outputs(session.trials[0]).stages
    store = session.outputs(session.trials[0]).work.store
    shutil.rmtree(store.path(stages.scores.address))
    assert kinds(session.graph()) == {"Score": 1}
    shutil.rmtree(store.path(stages.selection.address))
    shutil.rmtree(store.path(stages.chunks.address))
    assert kinds(session.graph()) == {"Select": 1, "Score": 1}
    shutil.rmtree(store.path(stages.rankings.address))
    assert kinds(session.graph()) == {"Chunk": 1, "Contextualize": 1, "Retrieve": 1, "Select": 1, "Score": 1}


def test_models_are_asked_between_tasks(session: Session) -> None:
    """All texts are embedded at once, before any ranking; what only one stage needs is made in the task of that one."""
    _, engine = executed(session)
    flat = [name for task in engine.tasks for name in task]
    # A chunking is made with its contexts, a selection with its scores, and dense search, which only hybrid needs here,
    # with hybrid.
    assert Counter(flat) == {"tokenize": 1, "augment": 2, "retrieve": 4, "score": 12}
    assert flat.index("retrieve") > max(at for at, name in enumerate(flat) if name == "augment")
    assert len(engine.tasks) < len(flat)  # quick stages travel together


def test_a_trial_is_ready_as_soon_as_its_stages_are(session: Session) -> None:
    """`until` returns before the others are made."""
    engine = Recording()
    caller = Models().caller(answers_of(session))
    execution = Execution(session.graph(), engine, ModelAccess(caller, None, lambda _: None, Paces(session.store)))
    outputs = session.outputs(session.trials[0])
    execution.until(outputs.stages.scores.address)
    assert outputs.stages.scores.done(outputs.work)
    assert any(not one.stages.scores.done(one.work) for one in map(session.outputs, session.trials))
    execution.until(outputs.stages.scores.address)
    execution.finish()
    assert session.graph().nodes == {}


def test_a_dead_worker_is_one_line(session: Session) -> None:
    """Also if it dies in the middle of a task."""
    from concurrent.futures.process import BrokenProcessPool

    class Dying(Recording):
        def submit(self, task: Callable[..., Any], /, *arguments: Any, here: bool = False) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(BrokenProcessPool("gone"))
            return future

    caller = Models().caller(answers_of(session))
    execution = Execution(session.graph(), Dying(), ModelAccess(caller, None, lambda _: None, Paces(session.store)))
    with pytest.raises(HarnessError, match="a worker process died"):
        execution.finish()


@pytest.mark.parametrize("file", ["every_component.yaml", "quickstart.yaml"])
def test_stages_are_the_same_in_every_process(file: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stage that was sent as JSON has the address of the one that was written."""
    for name, value in {
        "MODEL": "m",
        "DATA": "cookbook",
        "RERANK_URL": "http://127.0.0.1:9",
        "RERANK_MODEL": "r",
    }.items():
        monkeypatch.setenv(name, value)
    experiment = read_experiment(ROOT / "experiments" / file)
    session = Session(experiment, tmp_path / "store")
    stages = [node.stage for node in session.graph().nodes.values() if isinstance(node.stage, StoredStage)]
    assert len(stages) > 40
    for stage in stages:
        text = stage_json(stage)
        assert json.loads(text)["stage"] == type(stage).__name__
        assert read_stage(text).address == stage.address
