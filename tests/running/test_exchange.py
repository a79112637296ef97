"""What machines with one bucket exchange: answers that were paid for, records of launches, accesses to locked sets."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from bucket_server import new_bucket, served, use
from project import FIRST, harness

from harness.core.errors import StoreError
from harness.llm import AnswerCache, Label
from harness.llm.answer_cache import Call
from harness.running.exchange import fetch, send, sending
from harness.running.stages.workspace import ANSWERS
from harness.storage.bucket import bucket_of, local_folder
from harness.storage.model_outputs import ScoreCache, Scored
from harness.storage.sqlite_merge import snapshot


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as found:
        yield found


@pytest.fixture
def machine(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """The folder of the store on a machine of this name."""
    use(monkeypatch, address, tmp_path)
    url = new_bucket(address)
    monkeypatch.setenv("HARNESS_STORE", url)

    def folder(name: str) -> Path:
        monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / name))
        return local_folder(url)

    return folder


def call(name: str) -> Call:
    return Call(name, "e", "m", "m-2", "ok", 1.0, 2.0, 3, 4, 5, 0, 0.25, b"{}")


def answer(store: Path, name: str, grade: int = 1) -> None:
    AnswerCache(store / ANSWERS).keep(call(f"call {name}"), {name: Label(grade, why="because")})


def answers(store: Path, names: Sequence[str]) -> dict[str, int]:
    return {name: label.grade for name, label in AnswerCache(store / ANSWERS).labels(names).items()}  # type: ignore[union-attr]


def objects(store: Path, prefix: str) -> list[str]:
    bucket = bucket_of(store)
    assert bucket is not None
    return [entry.name for entry in bucket.entries(prefix)]


def written(store: Path) -> dict[str, object]:
    """When each object was written."""
    bucket = bucket_of(store)
    assert bucket is not None
    return {entry.name: entry.modified for entry in bucket.entries()}


def test_answers_are_united(machine: Callable[[str], Path]) -> None:
    """Each machine gets those of all others with what they cost, and a later object replaces the ones it contains."""
    one, two = machine("one"), machine("two")
    answer(one, "a")
    send(one)
    answer(two, "b", 2)
    fetch(two)
    assert answers(two, ["a", "b"]) == {"a": 1, "b": 2}
    assert len(objects(two, "answers.sqlite/")) == 1
    send(two)
    assert len(objects(two, "answers.sqlite/")) == 1
    fetch(one)
    assert answers(one, ["a", "b"]) == {"a": 1, "b": 2}
    assert AnswerCache(one / ANSWERS).paid(["a", "b"]) == (0.5, 0)
    before = written(one)
    send(one)
    send(two)
    assert written(one) == before  # nothing new to send


def test_machines_that_send_at_once(machine: Callable[[str], Path]) -> None:
    """Neither has seen the other's answers; none is lost, and of two answers to one question the own one is kept."""
    one, two, three = machine("one"), machine("two"), machine("three")
    answer(one, "a", 1)
    answer(two, "a", 2)
    answer(two, "b", 2)
    bucket = bucket_of(one)
    assert bucket is not None
    for store in (one, two):
        content = snapshot(AnswerCache(store / ANSWERS))
        bucket.create(f"answers.sqlite/{hashlib.sha256(content).hexdigest()}", content)
    for store in (one, two, three):
        fetch(store)
    assert answers(one, ["a", "b"]) == {"a": 1, "b": 2}
    assert answers(two, ["a", "b"]) == {"a": 2, "b": 2}
    assert answers(three, ["a", "b"]).keys() == {"a", "b"}


def test_answers_that_were_damaged_here_stay_in_the_bucket(machine: Callable[[str], Path]) -> None:
    """And come back: what this machine sends contains all that is there."""
    one, two = machine("one"), machine("two")
    for name in "abc":
        answer(one, name)
    send(one)
    cache = AnswerCache(one / ANSWERS)
    cache.write(lambda db: db.execute("DELETE FROM labels WHERE address IN ('a', 'b')"))
    answer(one, "d")
    send(one)
    fetch(two)
    assert answers(two, "abcd").keys() == answers(one, "abcd").keys() == set("abcd")


def test_records_are_not_sent_again(machine: Callable[[str], Path]) -> None:
    """Those of launches never change; of a calibration, the newer one counts."""
    one, two = machine("one"), machine("two")
    for folder in ("launches", "calibrations"):
        (one / folder).mkdir()
        (one / folder / "x.json").write_text("1")
    send(one)
    before = written(one)
    fetch(two)
    send(two)
    fetch(one)
    send(one)
    assert written(one) == before
    for folder in ("launches", "calibrations"):
        (two / folder / "x.json").write_text("2")
        later = time.time() + 5
        os.utime(two / folder / "x.json", (later, later))
    send(two)
    bucket = bucket_of(one)
    assert bucket is not None
    assert [bucket.get(f"{folder}/x.json") for folder in ("launches", "calibrations")] == [b"1", b"2"]


def test_damaged_answers_are_left_out(machine: Callable[[str], Path]) -> None:
    """An object that is not what its name says, and one that is no SQLite file."""
    one, two = machine("one"), machine("two")
    answer(one, "a")
    send(one)
    bucket = bucket_of(one)
    assert bucket is not None
    (name,) = objects(one, "answers.sqlite/")
    bucket.replace(name, b"noise")
    fetch(two)
    assert answers(two, ["a"]) == {}


def test_scores_of_rerankers_are_united(machine: Callable[[str], Path]) -> None:
    """They may have cost money, too."""
    one, two = machine("one"), machine("two")
    ScoreCache(one / "scores.sqlite").put("s", {("q", "t"): Scored(0.5, 1.0)})
    send(one)
    fetch(two)
    assert ScoreCache(two / "scores.sqlite").get("s", [("q", "t")]) == {("q", "t"): Scored(0.5, 1.0)}


def test_answers_of_a_launch_that_fails_are_sent(machine: Callable[[str], Path]) -> None:
    """They were paid for; the failure is the one that is reported, also if the bucket is gone."""
    one, two = machine("one"), machine("two")

    def launch() -> None:
        with sending(one):
            answer(one, "a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        launch()
    fetch(two)
    assert answers(two, ["a"]) == {"a": 1}


def test_a_folder_exchanges_nothing(tmp_path: Path) -> None:
    """A store that is only a folder."""
    fetch(tmp_path)
    send(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_launches_of_other_machines(garden_data: Path, machine: Callable[[str], Path], tmp_path: Path) -> None:
    """Found by name, with their results."""
    (tmp_path / "x.yaml").write_text(FIRST)
    machine("one")
    harness(tmp_path, "run", "x.yaml", "--no-mlflow")
    there = harness(tmp_path, "compare", "first", "--json").stdout
    machine("two")
    here = harness(tmp_path, "compare", "first", "--json").stdout
    assert json.loads(here) == json.loads(there)


def test_accesses_to_a_locked_set_are_counted_on_all_machines(
    garden_data: Path, machine: Callable[[str], Path], tmp_path: Path
) -> None:
    """Each launch once, wherever it ran."""
    (tmp_path / "x.yaml").write_text(FIRST)
    for number, name in enumerate(("one", "two", "one"), 1):
        machine(name)
        harness(tmp_path, "run", "x.yaml", "--no-mlflow")
        out = harness(tmp_path, "run", "x.yaml", "--no-mlflow", "--final").stdout
        records = list(machine(name).glob("openings/*.txt"))
        assert [len(record.read_text().splitlines()) for record in records] == [number], out


def test_a_bucket_that_cannot_be_reached_is_said_at_once(
    machine: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any work."""
    monkeypatch.setattr("harness.storage.bucket.FIRST_PATIENCE", 0.3)
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(StoreError, match="cannot be used"):
        fetch(machine("one"))
