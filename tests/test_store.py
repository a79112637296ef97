"""The store: atomic, checked, explained, shared."""

import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from harness.errors import StoreError
from harness.store import Artifact, Store, digest

KEY = {"stage": "chunk", "size": 256}


def artifact() -> Artifact:
    return Artifact({"a": np.arange(3)}, {"text": "é\ud800"})


def never() -> Artifact:
    raise AssertionError("built although it is stored")


def test_what_is_stored_is_not_built_again(tmp_path: Path) -> None:
    """A second store object on the folder reads what the first one built, half surrogates included."""
    Store(tmp_path).get(KEY, artifact)
    again = Store(tmp_path)
    found = again.get(KEY, never)
    assert found.arrays["a"].tolist() == [0, 1, 2]
    assert found.data == {"text": "é\ud800"}
    assert again.built == {}


def test_the_hashed_key_stands_beside_the_artifact(tmp_path: Path) -> None:
    """Anybody can see what an address stands for."""
    Store(tmp_path).get(KEY, artifact)
    record = json.loads((Store(tmp_path).path(digest(KEY)) / "key.json").read_text())
    assert record["key"] == KEY


@pytest.mark.parametrize("damage", ["flip", "truncate", "remove", "key"])
def test_a_damaged_artifact_is_set_aside_and_built_again(tmp_path: Path, damage: str) -> None:
    """A flipped byte, a lost tail, a missing file, a broken key: the checksum or its absence tells."""
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
    else:
        (folder / "key.json").write_text("{")
    store = Store(tmp_path)
    assert store.get(KEY, artifact).arrays["a"].tolist() == [0, 1, 2]
    assert store.built == {"chunk": 1}
    assert store.damaged == [digest(KEY)]
    Store(tmp_path).get(KEY, never)


def test_a_builder_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """Neither an artifact nor a draft."""
    with pytest.raises(AssertionError):
        Store(tmp_path).get(KEY, never)
    assert not Store(tmp_path).has(KEY)
    assert not [path for path in tmp_path.rglob("*") if "draft" in path.name]


def test_two_at_once_build_once(tmp_path: Path) -> None:
    """The second waits for the first and reads what it left."""
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
    """One line that says what to do, not a traceback."""
    (tmp_path / "store").write_text("not a folder")
    with pytest.raises(StoreError, match="--store"):
        Store(tmp_path / "store").get(KEY, artifact)


def test_a_full_disk_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write fails, the message says so, and no half artifact is left."""

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
