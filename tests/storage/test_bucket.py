"""Stores in a bucket, on a real server: conditional puts, damage, outages, and machines that share nothing else."""

import hashlib
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from bucket_server import failing, new_bucket, served, use

from harness.core.errors import ConfigError, StoreError
from harness.core.records import Embedded
from harness.storage import bucket as buckets
from harness.storage.bucket import Bucket, address_of, bucket_of, local_folder
from harness.storage.store import Artifact, Store
from harness.storage.vector_shards import VectorShards

KEY = {"stage": "x", "n": 1}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as found:
        yield found


@pytest.fixture
def url(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    use(monkeypatch, address, tmp_path / "cache")
    return new_bucket(address)


@pytest.fixture
def machine(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """The folder of the store on a machine of this name."""

    def folder(name: str) -> Path:
        monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / name))
        return local_folder(url)

    return folder


def artifact(value: float) -> Artifact:
    return Artifact({"a": np.full(3, value)}, {"text": "é"})


def test_objects(url: str) -> None:
    """Created once, read, listed with their sizes, replaced and removed."""
    bucket = Bucket(url)
    assert bucket.get("a/b") is None
    assert not bucket.has("a/b")
    assert bucket.create("a/b", b"one")
    assert not bucket.create("a/b", b"two")
    assert bucket.get("a/b") == b"one"
    bucket.replace("a/b", b"three")
    bucket.create("a/c", b"")
    bucket.create("b", b"x")
    assert [(entry.name, entry.size) for entry in bucket.entries("a/")] == [("a/b", 5), ("a/c", 0)]
    bucket.remove(["a/b", "gone"])
    assert [entry.name for entry in bucket.entries()] == ["a/c", "b"]
    bucket.require()


def test_a_folder_is_in_front_of_a_bucket(url: str, tmp_path: Path) -> None:
    """One for each URL, below HARNESS_CACHE; a folder that is a store by itself has none."""
    folder = local_folder(f"{url}/")
    assert folder == local_folder(url)
    assert folder.parent == tmp_path / "cache"
    assert folder != local_folder(f"{url}2")
    assert address_of(folder) == url
    assert bucket_of(folder) is not None
    assert bucket_of(local_folder(tmp_path)) is None
    assert address_of(tmp_path) == str(tmp_path)
    with pytest.raises(ConfigError, match=r"--store http://x: expected a folder or a URL that begins with s3://"):
        local_folder("http://x")


def test_an_artifact_is_built_on_one_machine(machine: Callable[[str], Path]) -> None:
    """Another with an empty disk reads it, and then needs no bucket for it."""
    first = Store(machine("one"))
    first.get(KEY, lambda: artifact(1))
    other = Store(machine("two"))
    assert other.has(KEY)
    assert other.get(KEY, lambda: artifact(2)).arrays["a"].tolist() == [1, 1, 1]
    assert (first.built, other.built) == ({"x": 1}, {})
    alone = Store(machine("two"))
    alone._bucket = None
    assert alone.get(KEY, lambda: artifact(3)).data == {"text": "é"}
    assert not alone.has({"stage": "y"})


def test_of_two_builders_the_first_counts(machine: Callable[[str], Path]) -> None:
    """Both built it at once; both use what was written first."""
    one, two = Store(machine("one")), Store(machine("two"))

    def slow() -> Artifact:
        one.get(KEY, lambda: artifact(1))
        return artifact(2)

    assert two.get(KEY, slow).arrays["a"].tolist() == [1, 1, 1]
    assert Store(machine("three")).get(KEY, lambda: artifact(3)).arrays["a"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("content", [b"", b"{}\nx", b"{", b"\xff\n"])
def test_a_damaged_object_is_replaced(machine: Callable[[str], Path], content: bytes) -> None:
    """The artifact is built again, reported, and whole for all other machines."""
    Store(machine("one")).get(KEY, lambda: artifact(1))
    bucket = bucket_of(machine("one"))
    assert bucket is not None
    (name,) = [entry.name for entry in bucket.entries("objects/")]
    whole = bucket.get(name)
    assert whole is not None
    bucket.replace(name, content)
    two = Store(machine("two"))
    assert two.get(KEY, lambda: artifact(1)).arrays["a"].tolist() == [1, 1, 1]
    assert (two.built, len(two.damaged)) == ({"x": 1}, 1)
    assert bucket.get(name) == whole
    bucket.replace(name, whole[:-3] + b"abc")
    three = Store(machine("three"))
    three.get(KEY, lambda: artifact(1))
    assert len(three.damaged) == 1
    assert Store(machine("four")).get(KEY, lambda: artifact(9)).arrays["a"].tolist() == [1, 1, 1]


def vectors(*values: float) -> Embedded:
    return Embedded(np.array([[value, 1.0] for value in values], np.float32), np.zeros(len(values), np.bool_))


def test_vectors_of_other_machines_are_fetched(machine: Callable[[str], Path]) -> None:
    """Those that are added later, too; a damaged file is removed from the bucket, and its texts are missing."""
    one, two = VectorShards(machine("one") / "vectors"), VectorShards(machine("two") / "vectors")
    one.put("s", ["a", "b"], vectors(1, 2))
    assert two.missing("s", ["a", "b", "c"]) == ["c"]
    two.put("s", ["c"], vectors(3))
    found = one.get("s", ["c", "a"])
    assert found is not None
    assert found.vectors[:, 0].tolist() == [3, 1]
    bucket = bucket_of(machine("one"))
    assert bucket is not None
    names = {entry.name: entry.size for entry in bucket.entries("vectors/")}
    damaged = max(names, key=lambda name: names[name])
    bucket.replace(damaged, b"other")
    three = VectorShards(machine("three") / "vectors")
    assert three.missing("s", ["a", "b", "c"]) == ["a", "b"]
    assert three.damaged == 1
    assert [entry.name for entry in bucket.entries("vectors/")] == [name for name in names if name != damaged]
    assert hashlib.sha256(bucket.get(min(names, key=lambda name: names[name])) or b"").hexdigest() in min(
        names, key=lambda name: names[name]
    )


def test_a_bucket_that_is_not_there(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line each, without a page of XML: no such bucket, no server, no permission."""
    use(monkeypatch, address, tmp_path)
    with pytest.raises(StoreError) as told:
        Bucket("s3://nowhere/x").require()
    assert str(told.value) == "store s3://nowhere/x: there is no such bucket; nothing finished is lost"
    monkeypatch.setattr(buckets, "FIRST_PATIENCE", 0.3)
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(StoreError, match=r"^store s3://nowhere/x: cannot be used \(Generic S3 error: .*nothing fin"):
        Bucket("s3://nowhere/x").require()
    with failing(403, 99) as (place, _):
        monkeypatch.setenv("AWS_ENDPOINT", place)
        with pytest.raises(StoreError, match="permission denied; check the credentials in the environment") as told:
            Bucket("s3://nowhere/x").get("y")
    assert "testing-secret" not in str(told.value)


def test_a_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra that contains it."""
    monkeypatch.setitem(sys.modules, "obstore", None)
    bucket = Bucket("s3://b/x")
    for use_it in (bucket.require, lambda: bucket.get("y"), lambda: bucket.create("y", b"")):
        with pytest.raises(ConfigError, match=r"^store s3://b/x: obstore is missing; pip install .*\[cluster\]"):
            use_it()


def test_an_outage_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """503 four times, then an answer: nothing is lost. Without end: one line, after the time that is allowed."""
    with failing(503, 4) as (place, asked):
        use(monkeypatch, place, tmp_path)
        assert Bucket("s3://some/x").get("y") is None
        assert asked == ["GET /some/x/y"] * 5
    monkeypatch.setattr(buckets, "PATIENCE", 0.5)
    with failing(503, 9999) as (place, asked):
        use(monkeypatch, place, tmp_path)
        with pytest.raises(StoreError, match=r"^store s3://some/x: cannot be used .*503 Service Unavailable"):
            Bucket("s3://some/x").create("y", b"z")
        assert len(asked) > 2


def test_a_store_that_was_copied_needs_no_bucket(machine: Callable[[str], Path], tmp_path: Path) -> None:
    """The folder in front of a bucket is a store of the usual layout."""
    Store(machine("one")).get(KEY, lambda: artifact(1))
    shutil.copytree(machine("one"), tmp_path / "copy", ignore=shutil.ignore_patterns("bucket"))
    assert Store(tmp_path / "copy").get(KEY, lambda: artifact(2)).arrays["a"].tolist() == [1, 1, 1]
