"""The reach of a failure: what needs the failed stage is lost, all else is made, and nothing more is paid for."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import ComponentError, ConfigError, Experiment, read_experiment, run
from harness.components.embedders import Hashing
from harness.components.retrievers import Dense
from harness.running.session import Session
from tests.support.openai_server import Server, default_server, grade_all

CHUNKERS = '''
from dataclasses import dataclass

from harness.components import Chunker


@dataclass(frozen=True)
class Pieces(Chunker):
    """Cuts pieces; one size is broken."""

    size: int = 10

    def split(self, doc):
        if self.size == 13:
            {failure}
        return [(at, min(at + self.size, len(doc.text))) for at in range(0, len(doc.text), self.size)]
'''


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The default server of judges, which gives every passage a grade."""
    with default_server(monkeypatch, grade_all) as running:
        yield running


GRID = """
name: lucky
data: garden
chunker: {my.py:Pieces: {size: 40}}
retriever: bm25
selector: [{top_k: {k: 3}}]
metrics: [recall@3]
grid: {chunker.size: [40, 13, 30], selector.top_k.k: [3, 2]}
"""


def experiment(folder: Path, failure: str, more: str = "") -> Experiment:
    (folder / "my.py").write_text(CHUNKERS.replace("{failure}", failure))
    (folder / "x.yaml").write_text(GRID + more)
    return read_experiment(folder / "x.yaml")


def stored(study: Experiment, folder: Path) -> list[bool]:
    session = Session(study, folder / "store")
    return [all(session.outputs(trial).stored().values()) for trial in session.trials]


def test_texts_are_embedded_after_a_failure(garden_data: Path, tmp_path: Path) -> None:
    """An embedder that charges nothing goes on with the chunkings that exist."""
    study = experiment(tmp_path, "return [(0, 10 ** 9)]")
    study = replace(study, base=replace(study.base, retriever=Dense(), embedder=Hashing(16)))
    with pytest.raises(ConfigError, match="2 of 6 trials"):
        run(study, store=tmp_path / "store", log=False)
    assert stored(study, tmp_path) == [True, True, False, False, True, True]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failure_takes_only_what_needs_it(workers: int, garden_data: Path, tmp_path: Path) -> None:
    """Two of six trials use the broken setting; the other four are stored, and a second run has nothing else to do."""
    study, lines = experiment(tmp_path, "return [(0, 10 ** 9)]"), list[str]()
    for _ in range(2):
        with pytest.raises(ConfigError) as caught:
            run(study, store=tmp_path / "store", log=False, workers=workers, notify=lines.append)
        assert "2 of 6 trials are not scored: " in str(caught.value)
        assert "; the results of the others are stored" in str(caught.value)
        assert stored(study, tmp_path) == [True, True, False, False, True, True]
    assert len([line for line in lines if "making what does not need it" in line]) == 2


def test_an_error_of_a_component_has_its_traceback_and_its_reach(garden_data: Path, tmp_path: Path) -> None:
    """It names part and document; the traceback begins in the component's own code."""
    study = experiment(tmp_path, 'raise ZeroDivisionError("thirteen")')
    with pytest.raises(ComponentError, match="'bed0': ZeroDivisionError: thirteen.*2 of 6 trials are not") as caught:
        run(study, store=tmp_path / "store", log=False)
    assert caught.value.details.endswith("ZeroDivisionError: thirteen\n")
    assert "harness/" not in caught.value.details
    assert stored(study, tmp_path) == [True, True, False, False, True, True]


def test_a_failure_of_all_trials_is_reported_as_it_is(garden_data: Path, tmp_path: Path) -> None:
    """There are no others to speak of."""
    study = experiment(tmp_path, "return [(0, 10 ** 9)]")
    study = Experiment(study.name, study.trials()[2], base_dir=study.base_dir)
    with pytest.raises(ConfigError) as caught:
        run(study, store=tmp_path / "store", log=False)
    assert "trials are not scored" not in str(caught.value)


def test_nothing_is_paid_after_a_failure(garden_data: Path, tmp_path: Path, server: Server) -> None:
    """The judge would be asked about the four trials that are scored; but the launch has no result to pay for."""
    judge: Any = "judges: [{context_precision: {model: m}}]\n"
    with pytest.raises(ConfigError, match="2 of 6 trials"):
        run(experiment(tmp_path, "return [(0, 10 ** 9)]", judge), store=tmp_path / "store", log=False)
    assert server.asked == []
    run(experiment(tmp_path, "pass", judge), store=tmp_path / "store", log=False)
    assert server.calls
