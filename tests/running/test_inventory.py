"""What a store contains: shown by stage and experiment, pruned without losing a result, verified."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from bucket_server import new_bucket, served, use
from project import FIRST, harness, one_line

from harness.storage.bucket import bucket_of, local_folder


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as found:
        yield found


@pytest.fixture(params=["folder", "bucket"])
def folder(
    request: pytest.FixtureRequest, address: str, garden_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A project whose store is a folder or in a bucket, after a run whose chunker was changed, and another."""
    use(monkeypatch, address, tmp_path / "cache")
    place = new_bucket(address) if request.param == "bucket" else str(tmp_path / "store")
    monkeypatch.setenv("HARNESS_STORE", place)
    dense = FIRST.replace("bm25", "dense")
    for text in (dense, dense.replace("size: 20", "size: 30"), FIRST.replace("name: first", "name: other")):
        (tmp_path / "x.yaml").write_text(text)
        harness(tmp_path, "run", "x.yaml", "--no-mlflow")
    return tmp_path


def test_what_is_there(folder: Path) -> None:
    """By stage, with the number of artifacts; by experiment; and what no experiment uses."""
    lines = harness(folder, "store", "show").stdout.splitlines()
    rows = [line.split() for line in lines if line.startswith("  ") and "not used" not in line]
    counts = {row[0]: int(row[-3]) for row in rows}
    assert [counts[stage] for stage in ("chunk", "index", "retrieve", "select", "score", "tokenize")] == [
        2,
        1,
        2,
        2,
        2,
        1,
    ]
    # The chunks of size 20 are still used by `other`; the ranking by vectors, selection and scores are not.
    assert [line.split()[2] for line in lines if line.startswith("  not used")] == ["3"]
    assert [line.split(",")[0] for line in lines if line.startswith("experiment")] == [
        "experiment 'first'",
        "experiment 'other'",
    ]
    assert not any("prune" in line for line in lines)  # nothing is a day old


def test_what_can_go(folder: Path) -> None:
    """Nothing younger than asked for, nothing without --yes, and no result of a newest launch."""
    assert "would remove 0 items" in harness(folder, "store", "prune").stdout
    assert "would remove 3 items" in harness(folder, "store", "prune", "--older", "0").stdout
    assert "removed 3 items" in harness(folder, "store", "prune", "--older", "0", "--yes").stdout
    assert "would remove 0 items" in harness(folder, "store", "prune", "--older", "0").stdout
    again = harness(folder, "run", "x.yaml", "--no-mlflow").stdout
    assert "computed: nothing" in again
    dense = FIRST.replace("bm25", "dense")
    (folder / "x.yaml").write_text(dense.replace("size: 20", "size: 30"))
    assert "computed: nothing" in harness(folder, "run", "x.yaml", "--no-mlflow").stdout
    (folder / "x.yaml").write_text(dense)
    assert "computed: 1 retrieve, 1 select, 1 score" in harness(folder, "run", "x.yaml", "--no-mlflow").stdout


def test_what_is_damaged(folder: Path) -> None:
    """Named, on this machine and in the bucket; the next run makes it again."""
    assert "0 damaged" in harness(folder, "store", "verify").stdout
    store = local_folder(os.environ["HARNESS_STORE"])
    bucket = bucket_of(store)
    bad = {next(store.glob("objects/*/*/arrays.npz")).parent, next(store.glob("vectors/*/*.arrow"))}
    for path in bad:
        target = path / "arrays.npz" if path.is_dir() else path
        target.write_bytes(target.read_bytes()[:-1])
    places = {str(path) for path in bad}
    if bucket is not None:
        entry = next(entry for entry in bucket.entries("objects/"))
        content = bucket.get(entry.name)
        assert content is not None
        bucket.replace(entry.name, content[:-1] + b"?")
        places.add(f"{bucket.url}/{entry.name}")
    lines = harness(folder, "store", "verify", code=1).stdout.splitlines()
    assert {line.removeprefix("damaged: ") for line in lines[:-1]} == places


def test_a_launch_of_an_earlier_version(folder: Path) -> None:
    """It did not record what it uses, so nothing is removed until it has run again."""
    store = local_folder(os.environ["HARNESS_STORE"])
    path = max((store / "launches").glob("*.json"))
    record = json.loads(path.read_text())["content"]
    del record["uses"]
    path.write_text(json.dumps(record))
    assert "experiment 'other': did not record what it uses" in harness(folder, "store", "show").stdout
    done = harness(folder, "store", "prune", "--older", "0", "--yes", code=None)
    one_line(done, "the newest launch of 'other' did not record what it uses; run the experiment again first")
    harness(folder, "run", "x.yaml", "--no-mlflow")
    assert "would remove 3 items" in harness(folder, "store", "prune", "--older", "0").stdout
