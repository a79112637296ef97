"""The store: atomic writes, checksums, disk errors, concurrent access."""

import errno
import fcntl
import hashlib
import json
import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from harness.core.errors import StoreError
from harness.core.memory import resident_memory
from harness.storage import mapped
from harness.storage import store as store_module
from harness.storage.digest import canonical, digest
from harness.storage.files import explained
from harness.storage.locks import locked
from harness.storage.store import Artifact, Store

KEY = {"stage": "chunk", "size": 256}


def artifact() -> Artifact:
    return Artifact({"a": np.arange(3)}, {"text": "é\ud800"})


def never() -> Artifact:
    raise AssertionError("built although it is stored")


def test_a_stored_artifact_is_not_built_again(tmp_path: Path) -> None:
    """A second Store object on the folder reads what the first one built, including lone surrogates."""
    Store(tmp_path).get(KEY, artifact)
    again = Store(tmp_path)
    found = again.get(KEY, never)
    assert found.arrays["a"].tolist() == [0, 1, 2]
    assert found.data == {"text": "é\ud800"}
    assert again.built == {}


def test_the_hashed_key_is_stored_with_the_artifact(tmp_path: Path) -> None:
    """This shows what an address stands for."""
    Store(tmp_path).get(KEY, artifact)
    record = json.loads((Store(tmp_path).path(digest(KEY)) / "key.json").read_text())
    assert record["key"] == KEY


@pytest.mark.parametrize("damage", ["flip", "truncate", "remove", "key", "other key", "no sum"])
def test_a_damaged_artifact_is_set_aside_and_built_again(tmp_path: Path, damage: str) -> None:
    """A flipped bit, a truncated or missing file, a broken key or the key of another artifact, a missing checksum."""
    Store(tmp_path).get(KEY, artifact)
    folder = Store(tmp_path).path(digest(KEY))
    arrays = folder / "arrays.npz"
    content = bytearray(arrays.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 1
        arrays.write_bytes(bytes(content))
    elif damage == "truncate":
        arrays.write_bytes(bytes(content[:20]))
    elif damage == "remove":
        arrays.unlink()
    elif damage == "key":
        (folder / "key.json").write_text("{")
    else:
        record = json.loads((folder / "key.json").read_text())
        changed = {"key": {"stage": "chunk", "size": 255}} if damage == "other key" else {"sha256": None}
        (folder / "key.json").write_text(json.dumps(record | changed))
    store = Store(tmp_path)
    assert store.get(KEY, artifact).arrays["a"].tolist() == [0, 1, 2]
    assert store.built == {"chunk": 1}
    assert store.damaged == [digest(KEY)]
    assert len(list((tmp_path / "damaged").rglob("key.json"))) == 1  # kept for inspection
    Store(tmp_path).get(KEY, never)


def test_a_builder_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """Neither an artifact nor a temporary folder."""
    with pytest.raises(AssertionError):
        Store(tmp_path).get(KEY, never)
    assert not Store(tmp_path).has(KEY)
    assert not [path for path in tmp_path.rglob("*") if "draft" in path.name]


def test_concurrent_builders_build_once(tmp_path: Path) -> None:
    """The second waits for the first and reads its artifact."""
    entered, release = threading.Event(), threading.Event()

    def slow() -> Artifact:
        entered.set()
        release.wait(10)
        return artifact()

    first, second = Store(tmp_path), Store(tmp_path)
    one = threading.Thread(target=lambda: first.get(KEY, slow))
    one.start()
    entered.wait(10)
    two = threading.Thread(target=lambda: second.get(KEY, artifact))
    two.start()
    release.set()
    one.join(10)
    two.join(10)
    assert (first.built, second.built) == ({"chunk": 1}, {})


def test_a_file_in_the_way_is_explained(tmp_path: Path) -> None:
    """With one line that says what to do, not a traceback."""
    (tmp_path / "store").write_text("not a folder")
    with pytest.raises(StoreError, match="--store"):
        Store(tmp_path / "store").get(KEY, artifact)


def test_a_full_disk_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write fails, the message says so, and no partial artifact is left."""

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="disk is full"):
        Store(tmp_path).get(KEY, artifact)
    monkeypatch.undo()
    assert not Store(tmp_path).has(KEY)


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The least recently used artifact is read from disk again, and is equal."""
    monkeypatch.setattr(Store, "MEMORY", 100)
    store = Store(tmp_path)
    for size in range(5):
        store.get({"stage": "s", "n": size}, lambda size=size: Artifact({"a": np.full(10, size)}))
    assert store.get({"stage": "s", "n": 0}, never).arrays["a"].tolist() == [0] * 10
    assert store.built == {"s": 5}


def test_the_artifact_used_last_stays_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for two artifacts of 80 bytes, the least recently used of three is evicted."""
    monkeypatch.setattr(Store, "MEMORY", 160)
    store = Store(tmp_path)

    def got(size: int) -> Artifact:
        return store.get({"n": size}, lambda: Artifact({"a": np.full(5, size), "b": np.full(5, size)}))

    first, second = got(0), got(1)
    assert got(0) is first
    third = got(2)
    assert first.nbytes == 80
    assert got(0) is first
    assert got(2) is third
    assert got(1) is not second
    fourth = got(3)
    assert got(3) is fourth


def test_an_artifact_larger_than_the_memory_limit_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the next one is read."""
    monkeypatch.setattr(Store, "MEMORY", 10)
    store = Store(tmp_path)
    found = store.get(KEY, artifact)
    assert store.get(KEY, never) is found
    other = store.get({"n": 1}, artifact)
    assert store.get({"n": 1}, never) is other
    assert store.get(KEY, never) is not found


def test_a_lock_has_one_holder(tmp_path: Path) -> None:
    """While the block runs."""
    file = tmp_path / "locks" / "a"
    with locked(file), file.open() as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with file.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_build_leaves_no_lock(tmp_path: Path) -> None:
    """Nor a temporary folder."""
    store = Store(tmp_path)
    assert not store.has(KEY)
    store.get(KEY, artifact)
    assert store.has(KEY)
    assert store.path(digest(KEY)) == tmp_path / "objects" / digest(KEY)[:2] / digest(KEY)
    assert [path for name in ("locks", "drafts") for path in (tmp_path / name).iterdir()] == []


def test_the_temporary_folder_of_a_killed_writer_is_removed(tmp_path: Path) -> None:
    """Its content is not part of the artifact."""
    draft = tmp_path / "drafts" / digest(KEY)
    draft.mkdir(parents=True)
    (draft / "half.npz").write_text("half")
    Store(tmp_path).get(KEY, artifact)
    assert sorted(path.name for path in Store(tmp_path).path(digest(KEY)).iterdir()) == ["arrays.npz", "key.json"]


def test_an_artifact_published_by_another_process_is_kept(tmp_path: Path) -> None:
    """A second writer, after the lock file was removed, has the same content and discards it."""
    Store(tmp_path / "other").get(KEY, artifact)
    store = Store(tmp_path / "store")

    def late() -> Artifact:
        shutil.copytree(Store(tmp_path / "other").path(digest(KEY)), store.path(digest(KEY)))
        (tmp_path / "store/locks" / digest(KEY)).unlink()
        return artifact()

    assert store.get(KEY, late).arrays["a"].tolist() == [0, 1, 2]
    assert list((tmp_path / "store/drafts").iterdir()) == []
    Store(tmp_path / "store").get(KEY, never)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENOSPC, "disk is full"),
        (errno.EDQUOT, "quota is used up"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "permission denied"),
        (errno.EPERM, "permission denied"),
        (errno.ENOTDIR, "a part of the path is a file"),
        (errno.EEXIST, "is a file, not a folder"),
    ],
)
def test_disk_errors_are_explained(number: int, expected: str, tmp_path: Path) -> None:
    """With the folder and what to do."""
    with pytest.raises(StoreError, match=expected), explained(tmp_path):
        raise OSError(number, "refused")


def test_other_disk_errors_show_the_system_message(tmp_path: Path) -> None:
    """With the folder, and what might help."""
    for error in (OSError(errno.EIO, "broken"), OSError("broken without a number")):
        with pytest.raises(StoreError, match="it cannot be used .broken.*--store") as raised, explained(tmp_path):
            raise error
        assert raised.value.__cause__ is error


def test_the_digest_is_of_the_canonical_text() -> None:
    """Sorted keys, no spaces, no escapes, also with lone surrogates; a value without a JSON form has no digest."""
    assert canonical({"b": [1, 2], "a": "é"}) == '{"a":"é","b":[1,2]}'
    assert digest("é") == hashlib.sha256('"é"'.encode()).hexdigest()
    assert digest("\ud800") != digest("\ud801")
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(float("nan"))


def test_pickles_are_never_written_or_read(tmp_path: Path) -> None:
    """Someone who can write to the store, including checksums, must not be able to run code."""
    pickled = Artifact({"a": np.array([{"any": "object"}], object)})
    with pytest.raises(ValueError, match="allow_pickle"):
        Store(tmp_path).get(KEY, lambda: pickled)
    assert not Store(tmp_path).has(KEY)
    Store(tmp_path).get(KEY, artifact)
    folder = Store(tmp_path).path(digest(KEY))
    np.savez(folder / "arrays.npz", a=pickled.arrays["a"])
    checksum = hashlib.sha256((folder / "arrays.npz").read_bytes()).hexdigest()
    (folder / "key.json").write_text(json.dumps({"key": KEY, "sha256": checksum}))
    with pytest.raises(ValueError, match="Python objects"):
        Store(tmp_path).get(KEY, never)


def test_a_large_artifact_is_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its arrays are aligned views of the file, checked like any other, and take none of the store's memory."""
    monkeypatch.setattr(store_module, "LARGE", 1000)
    arrays = {"odd": np.arange(3, dtype=np.uint8), "large": np.arange(1000), "empty": np.zeros((0, 4))}
    first = Store(tmp_path)
    again = Store(tmp_path)
    for found in (first.get(KEY, lambda: Artifact(arrays, {"é": 1})), again.get(KEY, never)):
        assert found.data == {"é": 1}
        assert {name: array.tolist() for name, array in found.arrays.items()} == {
            name: array.tolist() for name, array in arrays.items()
        }
        assert all(array.ctypes.data % 64 == 0 for array in found.arrays.values() if len(array))
        assert not found.arrays["large"].flags.writeable
    assert (first._held, again._held) == (0, 0)
    with (first.path(digest(KEY)) / "arrays.npz").open("r+b") as file:
        file.seek(4000)
        file.write(b"damaged")
    third = Store(tmp_path)
    assert third.get(KEY, lambda: Artifact(arrays, {"é": 1})).arrays["large"].tolist() == list(range(1000))
    assert third.damaged == [digest(KEY)]


def test_mapped_artifacts_leave_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those read longest ago, beyond a limit; what is read of them again is the same."""
    monkeypatch.setattr(store_module, "LARGE", 1000)
    monkeypatch.setattr(mapped, "RESIDENT", 20_000)
    monkeypatch.setattr(mapped, "LARGE_PROCESS", 2**60)
    monkeypatch.setattr(store_module, "MAPPED", mapped.Mapped())
    released: list[int] = []
    monkeypatch.setattr(mapped, "release", lambda content: released.append(len(content)))
    store = Store(tmp_path)
    arrays = [np.arange(1000) + at for at in range(5)]
    made = [store.get({**KEY, "n": at}, lambda at=at: Artifact({"a": arrays[at]})) for at in range(5)]
    assert len(released) == 5 + 2  # each was released once after it was hashed
    assert all(np.array_equal(found.arrays["a"], array) for found, array in zip(made, arrays, strict=True))


@pytest.mark.skipif(not resident_memory(), reason="this system does not report the memory of a process")
def test_a_large_process_gives_memory_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When an artifact is built, what was mapped before leaves the memory; it can still be read."""
    monkeypatch.setattr(mapped, "LARGE_PROCESS", 0)
    store = Store(tmp_path)
    large = store.get(KEY, lambda: Artifact({"a": np.ones(2**23)})).arrays["a"]
    assert large.sum() == 2**23
    before = resident_memory()
    store.get({**KEY, "n": 1}, lambda: Artifact({"a": np.ones(3)}))
    assert before - resident_memory() > 0.9 * large.nbytes
    assert large.sum() == 2**23
