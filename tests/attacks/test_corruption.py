"""Damage to every stored file: detected, set aside and rebuilt, or an error in one line; never a wrong number."""

import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from openai_server import Server, grade_all
from project import harness, project

from harness.core.errors import StoreError
from harness.core.records import Embedded
from harness.llm import AnswerCache, Failure, Label
from harness.llm.answer_cache import Call
from harness.llm.leases import Leases
from harness.running.locked_set import _read
from harness.storage.model_outputs import ScoreCache, Scored
from harness.storage.sealed import read_sealed, write_sealed
from harness.storage.sqlite_file import SqliteFile
from harness.storage.store import Artifact, Store
from harness.storage.vector_shards import VectorShards
from judges import ContextPrecision

SHORT, LONG = 8, 120
"""Number of corruptions tried through the command line, by default and with `-m long`."""


def flip(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content))
    return content[:at] + bytes([content[at] ^ (1 << chance.randrange(8))]) + content[at + 1 :]


def cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content))]


def zeros(content: bytes, chance: random.Random) -> bytes:
    at, length = chance.randrange(len(content)), chance.randrange(1, 4096)
    return content[:at] + bytes(length) + content[at + length :]


def noise(content: bytes, chance: random.Random) -> bytes:
    at, length = chance.randrange(len(content)), chance.randrange(1, 64)
    return content[:at] + chance.randbytes(length) + content[at + length :]


def other(content: bytes, chance: random.Random) -> bytes:
    return chance.choice([b"", b"[]", b"{}", b"null", b"\x00" * 100, b"SQLite format 3\x00", b"[" * 5000, b"\xff\xfe"])


Whole = tuple[Path, Server, list[str]]

DAMAGES: list[Callable[[bytes, random.Random], bytes]] = [flip, flip, cut, zeros, noise, other]


def damaged(file: Path, chance: random.Random) -> str:
    """Damages a file at random; returns a description."""
    if chance.random() < 0.08:
        file.unlink()
        file.mkdir()
        return "a folder"
    how = chance.choice(DAMAGES)
    content = file.read_bytes()
    file.write_bytes(how(content, chance) if content else b"x")
    return how.__name__


def results(table: str) -> list[str]:
    """The lines of a comparison with the numbers of trials."""
    return [line for line in table.splitlines() if "fixed" in line and "│" in line]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """A project that has run, with judges, dense retrieval and a final launch; and the judge's server."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("plain_data", Path(__file__).parents[1] / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    plain = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plain)
    folder = tmp_path_factory.mktemp("whole")
    documents = plain.garden()
    asked = plain.questions(documents)
    plain.write_dataset(folder / "datasets/garden", documents, asked, [{**asked[0], "id": "locked"}])
    project(folder, "", **{"{bm25: {depth: 5}}": "{hybrid: {depth: 5}}\nembedder: {hashing: {dimensions: 16}}"})
    with Server(lambda asked: grade_all(asked, lambda question, text: len(text) % 4)) as server:
        known = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": server.url}
        harness(folder, "run", "x.yaml", "--no-mlflow", **known)
        harness(folder, "run", "x.yaml", "--no-mlflow", "--final", "--choose", "chunker.size=40", **known)
        yield folder, server, results(harness(folder, "compare", "x.yaml", **known).stdout)


def attack(whole: Whole, copy: Path, seed: int) -> None:
    folder, server, before = whole
    known = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": server.url}
    chance = random.Random(seed)
    shutil.copytree(folder, copy)
    files = sorted(
        file
        for file in (copy / ".harness").rglob("*")
        if file.is_file() and file.suffix not in (".lock", "-shm") and "owners" not in str(file) and file.stat().st_size
    )
    kinds = sorted({file.name if file.suffix != ".json" or file.name == "key.json" else "record" for file in files})
    kind = kinds[seed % len(kinds)]
    matching = [
        f for f in files if f.name == kind or (kind == "record" and f.suffix == ".json" and f.name != "key.json")
    ]
    file = chance.choice(matching)
    how = f"seed {seed}: {damaged(file, chance)} in {file.relative_to(copy)}"
    done = harness(copy, "run", "x.yaml", "--no-mlflow", code=None, **known)
    assert "Traceback" not in done.stderr, how
    assert done.returncode in (0, 2), (how, done.stderr)
    if done.returncode == 2:
        assert done.stderr.count("\n") == 1, how
        return
    after = harness(copy, "compare", "x.yaml", code=None, **known)
    assert results(after.stdout) == before, how
    if seed < SHORT:
        return
    named = harness(copy, "compare", "attacked", code=None, **known)
    assert named.returncode in (0, 2), how


@pytest.mark.parametrize("seed", range(SHORT))
def test_damage_changes_no_number(whole: Whole, tmp_path: Path, seed: int) -> None:
    """Files of every kind in the store, one at a time."""
    attack(whole, tmp_path / "copy", seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SHORT, LONG))
def test_much_damage_changes_no_number(whole: Whole, tmp_path: Path, seed: int) -> None:
    """More of them."""
    attack(whole, tmp_path / "copy", seed)
    shutil.rmtree(tmp_path / "copy", ignore_errors=True)


LABELS: dict[str, Label] = {f"{at:04d}": Label(at % 4, f"because {at}", flags=("x",)) for at in range(300)}
NAMES = [f"text {at}" for at in range(300)]
VECTORS = np.arange(900, dtype=np.float32).reshape(300, 3) + 1
PAIRS = {(name, "a passage"): Scored(at / 3, float(at)) for at, name in enumerate(NAMES)}
CALL = Call("1", "http://h/v1", "m", "m-2", "ok", 1.0, 2.0, 3, 4, 5, 0, 0.25, b"{}")


def write_answers(file: Path) -> None:
    answers = AnswerCache(file)
    answers.keep(CALL, LABELS)
    answers.note({"failed": Failure("server", "HTTP 500")})
    answers.keep_capabilities("e", "m", {"mode": "plain", "limit": "max_tokens", "without": []})
    answers.close()


def read_answers(file: Path) -> None:
    answers = AnswerCache(file)
    answers.examine()
    found = answers.labels(list(LABELS))
    assert all(LABELS[address] == label for address, label in found.items())
    assert answers.failures(["failed"]) in ({}, {"failed": Failure("server", "HTTP 500")})
    assert answers.capabilities("e", "m") in (None, {"mode": "plain", "limit": "max_tokens", "without": []})
    dollars, unknown = answers.paid(list(LABELS))
    assert (dollars, unknown) == (0.25, 0) or dollars == 0
    assert set(answers.served(list(LABELS))) <= {"m-2"}
    answers.keep(CALL, LABELS)
    assert answers.labels(list(LABELS)) == LABELS
    answers.close()


def write_vectors(file: Path) -> None:
    VectorShards(file.parent).put("s", NAMES, Embedded(VECTORS, np.zeros(300, np.bool_)))


def read_vectors(file: Path) -> None:
    shards = VectorShards(file.parents[1])
    missing = shards.missing("s", NAMES)
    rows = [NAMES.index(name) for name in missing]
    if rows:
        shards.put("s", missing, Embedded(VECTORS[rows], np.zeros(len(rows), np.bool_)))
    found = shards.get("s", NAMES)
    assert found is not None
    assert np.array_equal(found.vectors, VECTORS)
    assert not found.truncated.any()


def write_scores(file: Path) -> None:
    cache = ScoreCache(file)
    cache.put("s", PAIRS)
    cache.close()


def read_scores(file: Path) -> None:
    cache = ScoreCache(file)
    assert all(PAIRS[pair] == found for pair, found in cache.get("s", list(PAIRS)).items())
    cache.put("s", PAIRS)
    assert all(PAIRS[pair] == found for pair, found in cache.get("s", list(PAIRS)).items())
    cache.close()


def write_leases(file: Path) -> None:
    with sqlite3.connect(file):
        pass
    leases = Leases(file)
    leases.take(list(LABELS))
    SqliteFile.close(leases)  # as a kill would leave it


def read_leases(file: Path) -> None:
    leases = Leases(file)
    leases.take(list(LABELS))
    leases.close()


ARTIFACT = Artifact({"a": np.arange(500), "b": np.ones((9, 9))}, {"text": ["é"] * 40})


def write_artifact(file: Path) -> None:
    Store(file.parent).get({"stage": "x", "n": 1}, lambda: ARTIFACT)


def read_artifact(file: Path) -> None:
    found = Store(file.parent.parents[2] if file.parent.name != "made" else file.parent).get(
        {"stage": "x", "n": 1}, lambda: ARTIFACT
    )
    assert found.data == ARTIFACT.data
    assert all(np.array_equal(found.arrays[name], array) for name, array in ARTIFACT.arrays.items())


FILES: dict[str, tuple[Callable[[Path], None], Callable[[Path], None], str]] = {
    "answers.sqlite": (write_answers, read_answers, "answers.sqlite"),
    "vectors": (write_vectors, read_vectors, "s/*.arrow"),
    "scores.sqlite": (write_scores, read_scores, "scores.sqlite"),
    "leases.sqlite": (write_leases, read_leases, "leases.sqlite"),
    "key.json": (write_artifact, read_artifact, "objects/*/*/key.json"),
    "arrays.npz": (write_artifact, read_artifact, "objects/*/*/arrays.npz"),
}


@pytest.mark.parametrize("name", FILES)
def test_two_hundred_damages_of_each_file(name: str, tmp_path: Path) -> None:
    """A read returns what was written, or nothing and can be rewritten; a newer version is an error in one line."""
    write, read, pattern = FILES[name]
    (tmp_path / "whole/made").mkdir(parents=True)
    write(tmp_path / "whole/made" / name)
    newer: list[str] = []
    for seed in range(200):
        copy = tmp_path / f"{seed}"
        shutil.copytree(tmp_path / "whole", copy)
        (file,) = (copy / "made").glob(pattern)
        how = damaged(file, random.Random(seed))
        print(f"seed {seed}: {how}")
        try:
            read(file)
        except StoreError as error:
            newer.append(str(error))
        shutil.rmtree(copy)
    assert all("is of version" in line for line in newer)


def test_a_text_that_became_bytes_is_damage(tmp_path: Path) -> None:
    """A flipped bit in a row's header turns text into a blob of the same bytes, whose checksum is the same."""
    file = tmp_path / "leases.sqlite"
    write_leases(file)
    with sqlite3.connect(file) as db:
        db.execute("UPDATE leases SET owner = CAST(owner AS BLOB)")
    assert Leases(file).take(list(LABELS)) == set(LABELS)
    cache = AnswerCache(tmp_path / "answers.sqlite")
    write_answers(cache.path)
    with sqlite3.connect(cache.path) as db:
        db.execute("UPDATE labels SET label = CAST(label AS BLOB)")
    assert cache.labels(list(LABELS)) == {}
    assert cache.damaged_rows == len(LABELS)


def test_a_newer_store_is_one_line(tmp_path: Path) -> None:
    """The line has both versions."""
    AnswerCache(tmp_path / "answers.sqlite").failures(["a"])
    with sqlite3.connect(tmp_path / "answers.sqlite") as db:
        db.execute("PRAGMA user_version=99")
    with pytest.raises(StoreError, match="is of version 99, this harness knows 1"):
        AnswerCache(tmp_path / "answers.sqlite").failures(["a"])


def test_an_older_store_is_migrated(tmp_path: Path) -> None:
    """Answers from before checksums are kept; impossible ones are dropped."""
    with sqlite3.connect(tmp_path / "answers.sqlite") as db:
        db.execute(
            "CREATE TABLE labels (address TEXT PRIMARY KEY, label TEXT NOT NULL, call TEXT NOT NULL) WITHOUT ROWID"
        )
        good = {"grade": 2, "why": "", "quote": "", "by": "llm", "flags": []}
        rows = [("a", json.dumps(good), ""), ("b", json.dumps({**good, "grade": 99}), ""), ("c", "[]", "")]
        db.executemany("INSERT INTO labels VALUES (?, ?, ?)", rows)
    assert AnswerCache(tmp_path / "answers.sqlite").labels(["a", "b", "c"]) == {"a": Label(2)}


@pytest.mark.parametrize(
    "label", ['{"grade": 9, "flags": []}', "[]", "{", '{"grade": "2", "flags": []}', '{"texts": []}']
)
@pytest.mark.parametrize("sealed", [False, True])
def test_an_impossible_grade_is_asked_again(
    label: str, sealed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a valid checksum or not, it is dropped and never scored."""
    from judged_questions import VICTIM, put

    monkeypatch.setenv("OPENAI_API_KEY", "any")
    with Server() as server:
        judge = ContextPrecision("m", base_url=server.url)
        assert put([VICTIM], tmp_path, judge).kinds(VICTIM) == ["label"] * 3
        answers = AnswerCache(tmp_path / "answers.sqlite")
        (address, *_) = judge.addresses(judge.tasks(VICTIM))
        if sealed:
            answers.write(lambda db: answers.insert(db, "labels", [(address, label, "")], replace=True))
        else:
            answers.write(lambda db: db.execute("UPDATE labels SET label = ? WHERE address = ?", (label, address)))
        answers.close()
        before = len(server.calls)
        outcome = put([VICTIM], tmp_path, judge)
        assert len(server.calls) == before + 1
        assert {one.grade for one in outcome.judgments.values() if not isinstance(one, Failure)} == {2}


@pytest.mark.parametrize("record", ["[]", "null", "3", "{}", "[" * 9000, '{"key": {"stage": "x"}, "sha256": "0"}'])
def test_a_record_of_anything_is_set_aside(record: str, tmp_path: Path) -> None:
    """The artifact is rebuilt, also if a file has become a folder."""
    key = {"stage": "x"}
    made = Artifact({"a": np.arange(3)}, "data")
    for breaks in ("record", "folder", "parent"):
        Store(tmp_path).get(key, lambda: made)
        (folder,) = (tmp_path / "objects").glob("*/*")
        if breaks == "record":
            (folder / "key.json").write_text(record)
        elif breaks == "folder":
            (folder / "arrays.npz").unlink()
            (folder / "arrays.npz").mkdir()
        else:
            shutil.rmtree(folder.parent)
            folder.parent.write_text("")
        store = Store(tmp_path)
        assert store.get(key, lambda: made).data == "data"
        assert store.built == {"x": 1}


@pytest.mark.parametrize("place", ["objects/??", "objects/??/*", "objects/??/*/key.json", "objects/??/*/arrays.npz"])
@pytest.mark.parametrize("target", ["itself", "nowhere"])
def test_links_in_the_way_are_set_aside(place: str, target: str, tmp_path: Path) -> None:
    """Circular and dangling links."""
    made = Artifact({"a": np.arange(3)}, "data")
    Store(tmp_path).get({"stage": "x"}, lambda: made)
    (path,) = tmp_path.glob(place)
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.symlink_to(path if target == "itself" else tmp_path / "none")
    assert Store(tmp_path).get({"stage": "x"}, lambda: made).data == "data"


@pytest.mark.parametrize("added", ["VIEW v AS SELECT 1", "TRIGGER t BEFORE INSERT ON labels BEGIN SELECT 1; END"])
def test_tables_with_something_else_are_set_aside(added: str, tmp_path: Path) -> None:
    """For example, a trigger could change what is stored."""
    write_answers(tmp_path / "answers.sqlite")
    with sqlite3.connect(tmp_path / "answers.sqlite") as db:
        db.execute(f"CREATE {added}")
    answers = AnswerCache(tmp_path / "answers.sqlite")
    assert answers.labels(list(LABELS)) == LABELS
    assert (answers.damaged, answers.saved) == (1, 300)


def test_damaged_small_records_are_detected(tmp_path: Path) -> None:
    """Two hundred corruptions: a read returns what was written, or nothing."""
    path, content = tmp_path / "a.json", {"labels": 120, "kappa": 0.61, "who": "Zoë"}
    found = []
    for seed in range(200):
        write_sealed(path, content, 1)
        damaged(path, random.Random(seed))
        found.append(read_sealed(path, 1))
        shutil.rmtree(path, ignore_errors=True)
    assert all(one is None or one == content for one in found)
    assert found.count(None) > 150


def test_test_set_accesses_are_counted_in_spite_of_damage(tmp_path: Path) -> None:
    """One line damaged, one missing: the count stays the same."""
    from harness.storage.sqlite_tables import checksum

    record = tmp_path / "o.txt"
    lines = [f"{number} 20260101-000000-ab{number:02d} 'x'" for number in range(1, 6)]
    whole = [f"{line} {checksum((line,))}\n" for line in lines]
    record.write_text("".join(whole))
    assert _read(record) == [line.partition(" ")[2] for line in lines]
    for broken in (
        [*whole[:2], "nonsense\n", *whole[3:]],
        whole[:1] + whole[2:],
        [whole[0][:-1] + whole[1], *whole[2:]],
    ):
        record.write_text("".join(broken))
        assert len(_read(record)) == 5
