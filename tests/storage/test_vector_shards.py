"""Vectors in Arrow files: one per text, verified when read, added to by many processes, and copied from SQLite."""

import hashlib
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import DataError, StoreError
from harness.core.records import Embedded
from harness.storage.model_outputs import text_key
from harness.storage.sqlite_tables import checksum
from harness.storage.vector_file import keys_of, read_vectors
from harness.storage.vector_shards import VectorShards


def embedded(*values: float) -> Embedded:
    return Embedded(np.array([[value, 1.0] for value in values], np.float32), np.array([value > 1 for value in values]))


def values(found: Embedded | None) -> list[float]:
    assert found is not None
    return [float(value) for value in found.vectors[:, 0]]


def test_missing_texts_are_listed_once_and_in_order(tmp_path: Path) -> None:
    """A repeated text counts once; namespaces are separate."""
    shards = VectorShards(tmp_path / "vectors")
    shards.put("s", ["b"], embedded(1))
    assert shards.missing("s", ["c", "b", "a", "c"]) == ["c", "a"]
    assert shards.missing("other", ["b"]) == ["b"]
    assert shards.missing("s", []) == []


def test_vectors_are_returned_in_the_requested_order(tmp_path: Path) -> None:
    """From several files, bit for bit, with the truncation flag."""
    VectorShards(tmp_path / "vectors").put("s", ["a", "b"], embedded(0.1, 2))
    VectorShards(tmp_path / "vectors").put("s", ["c"], embedded(3))
    found = VectorShards(tmp_path / "vectors").get("s", ["b", "c", "a", "b"])
    assert found is not None
    assert found.vectors[:, 0].tolist() == np.array([2, 3, 0.1, 2], np.float32).tolist()
    assert found.truncated.tolist() == [True, True, False, True]
    assert VectorShards(tmp_path / "vectors").get("s", ["a", "x"]) is None


def test_a_text_keeps_its_first_vector(tmp_path: Path) -> None:
    """Two launches that embed the same text agree on one vector, whatever the names of the files."""
    shards = VectorShards(tmp_path / "vectors")
    for value in (0.5, 0.7, 0.2, 0.9):
        shards.put("s", ["a"], embedded(value))
        assert values(shards.get("s", ["a"])) == [0.5]
    assert len(list((tmp_path / "vectors/s").iterdir())) == 4


def test_another_process_adds_vectors(tmp_path: Path) -> None:
    """They are found without opening the store again."""
    shards = VectorShards(tmp_path / "vectors")
    assert shards.get("s", ["a"]) is None
    VectorShards(tmp_path / "vectors").put("s", ["a"], embedded(1))
    assert values(shards.get("s", ["a"])) == [1]
    VectorShards(tmp_path / "vectors").put("s", ["b"], embedded(2))
    assert shards.missing("s", ["a", "b", "c"]) == ["c"]


WRITER = """
import sys
from pathlib import Path
import numpy as np
from harness.core.records import Embedded
from harness.storage.vector_shards import VectorShards

number = int(sys.argv[2])
for at in range(20):
    vectors = np.array([[number, 1], [at, 1]], np.float32)
    VectorShards(Path(sys.argv[1])).put("s", [f"{number}-{at}", f"all-{at}"], Embedded(vectors, np.zeros(2, np.bool_)))
"""


def test_processes_write_at_once(tmp_path: Path) -> None:
    """Four, without a lock: nothing is lost, and every text has its vector."""
    root = str(tmp_path / "vectors")
    writers = [subprocess.Popen([sys.executable, "-P", "-c", WRITER, root, str(number)]) for number in range(4)]
    assert [writer.wait() for writer in writers] == [0] * 4
    shards = VectorShards(tmp_path / "vectors")
    assert values(shards.get("s", [f"{number}-{at}" for number in range(4) for at in range(20)])) == [
        number for number in range(4) for _ in range(20)
    ]
    assert values(shards.get("s", [f"all-{at}" for at in range(20)])) == list(range(20))


@pytest.mark.parametrize("keep", [0, 10, 100, 5000])
def test_a_truncated_file_is_set_aside(tmp_path: Path, keep: int) -> None:
    """The rest of the file is kept for inspection; vectors are missing, not wrong."""
    VectorShards(tmp_path / "vectors").put("s", [str(n) for n in range(500)], embedded(*range(500)))
    (path,) = (tmp_path / "vectors/s").iterdir()
    path.write_bytes(path.read_bytes()[:keep])
    again = VectorShards(tmp_path / "vectors")
    missing = again.missing("s", [str(n) for n in range(500)])
    assert (len(missing), again.damaged) == (500, 1)
    again.put("s", missing, embedded(*map(float, missing)))
    assert values(again.get("s", ["7", "499"])) == [7, 499]
    assert sorted(one.suffix for one in (tmp_path / "vectors/s").iterdir()) == [".arrow", ".damaged-1"]


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    """One line that says what to do."""
    (tmp_path / "vectors").write_text("")
    with pytest.raises(StoreError, match="--store"):
        VectorShards(tmp_path / "vectors").put("s", ["a"], embedded(1))


def test_a_newer_format_is_one_line(tmp_path: Path) -> None:
    """It is not damage, and nothing is set aside."""
    folder = tmp_path / "vectors/s"
    folder.mkdir(parents=True)
    batch = pa.record_batch({"other": pa.array([1])}, metadata={b"format": b"2"})
    with pa.OSFile(str(folder / "x"), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
    (folder / "x").rename(folder / f"{hashlib.sha256((folder / 'x').read_bytes()).hexdigest()}.arrow")
    with pytest.raises(StoreError, match="is of version 2, this harness knows 1; upgrade"):
        VectorShards(tmp_path / "vectors").missing("s", ["a"])
    assert len(list(folder.glob("*.arrow"))) == 1


def test_no_texts_have_no_vectors(tmp_path: Path) -> None:
    """Nothing is missing."""
    found = VectorShards(tmp_path / "vectors").get("s", [])
    assert found is not None
    assert (found.vectors.shape, found.truncated.shape) == ((0, 0), (0,))


def test_texts_and_vectors_must_have_the_same_number(tmp_path: Path) -> None:
    """If not, none is stored."""
    shards = VectorShards(tmp_path / "vectors")
    for texts in (["a"], ["a", "b", "c"]):
        with pytest.raises(ValueError, match="2 vectors"):
            shards.put("s", texts, embedded(1, 2))
    assert shards.missing("s", ["a"]) == ["a"]


def test_vectors_of_other_lengths_are_refused(tmp_path: Path) -> None:
    """One embedder has one number of dimensions."""
    shards = VectorShards(tmp_path / "vectors")
    shards.put("s", ["a"], embedded(1))
    shards.put("s", ["b"], Embedded(np.ones((1, 3), np.float32), np.zeros(1, np.bool_)))
    with pytest.raises(DataError, match="differ in length"):
        shards.get("s", ["a", "b"])


def test_a_file_is_read_by_other_programs(tmp_path: Path) -> None:
    """Plain Arrow: keys are the SHA-256 of texts, vectors are lists of float32."""
    VectorShards(tmp_path / "vectors").put("s", ["a", "b"], embedded(0.5, 2))
    (path,) = (tmp_path / "vectors/s").iterdir()
    table = pa.ipc.open_file(str(path)).read_all()
    assert table.column("key").to_pylist() == [text_key("a"), text_key("b")]
    assert table.column("vector").to_pylist() == [[0.5, 1], [2, 1]]
    assert table.column("truncated").to_pylist() == [0, 1]
    found = read_vectors(path)
    assert found is not None
    assert not found.vectors.flags.owndata


@given(st.sets(st.binary(min_size=32, max_size=32), max_size=30))
def test_keys_that_end_in_zeros_stay_distinct(digests: set[bytes]) -> None:
    """Numpy ignores zeros at the end of bytes; of 32 bytes each, none become equal."""
    made = {*digests, bytes(32), bytes(31) + b"\1", b"\1" + bytes(31), b"\1\0\1" + bytes(29)}
    assert len(np.unique(keys_of(list(made)))) == len(made)


def test_vectors_of_earlier_versions_are_copied(tmp_path: Path) -> None:
    """From vectors.sqlite, once, without the damaged ones; they may have cost money."""
    with sqlite3.connect(tmp_path / "vectors.sqlite") as db:
        db.execute(
            "CREATE TABLE vectors (space TEXT, key BLOB, vector BLOB, truncated INTEGER, checksum INTEGER NOT NULL, "
            "PRIMARY KEY (space, key)) WITHOUT ROWID"
        )
        for at in range(5000):
            row = ("s", text_key(str(at)), np.array([at, 1], np.float32).tobytes(), at % 2)
            db.execute("INSERT INTO vectors VALUES (?,?,?,?,?)", (*row, checksum(row) + (at == 7)))
        db.execute("PRAGMA user_version=1")
    db.close()
    shards = VectorShards(tmp_path / "vectors")
    assert shards.missing("s", [str(at) for at in range(5000)]) == ["7"]
    found = shards.get("s", ["4999", "8"])
    assert values(found) == [4999, 8]
    assert found is not None
    assert found.truncated.tolist() == [True, False]
    assert shards.missing("other", ["1"]) == ["1"]
    count = len(list((tmp_path / "vectors/s").iterdir()))
    assert VectorShards(tmp_path / "vectors").missing("s", ["1", "7"]) == ["7"]
    assert len(list((tmp_path / "vectors/s").iterdir())) == count
