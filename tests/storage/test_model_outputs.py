"""Vectors in SQLite: one per text, and a damaged file is never replaced silently."""

from pathlib import Path

import numpy as np
import pytest

from harness.core.errors import StoreError
from harness.core.records import Embedded
from harness.storage.model_outputs import ScoreCache, Scored, VectorCache


def embedded(*values: float) -> Embedded:
    return Embedded(np.array([[value, 1.0] for value in values], np.float32), np.array([value > 1 for value in values]))


def test_missing_texts_are_listed_once_and_in_order(tmp_path: Path) -> None:
    """A repeated text counts once."""
    cache = VectorCache(tmp_path / "v.sqlite")
    cache.put("s", ["b"], embedded(1))
    assert cache.missing("s", ["c", "b", "a", "c"]) == ["c", "a"]
    assert cache.missing("other", ["b"]) == ["b"]


def test_vectors_are_returned_in_the_requested_order(tmp_path: Path) -> None:
    """Bit for bit, with the truncation flag."""
    VectorCache(tmp_path / "v.sqlite").put("s", ["a", "b"], embedded(0.1, 2))
    found = VectorCache(tmp_path / "v.sqlite").get("s", ["b", "a", "b"])
    assert found is not None
    assert found.vectors[:, 0].tolist() == np.array([2, 0.1, 2], np.float32).tolist()
    assert found.truncated.tolist() == [True, False, True]
    assert VectorCache(tmp_path / "v.sqlite").get("s", ["a", "x"]) is None


def test_a_text_keeps_its_first_vector(tmp_path: Path) -> None:
    """Two launches that embed the same text agree on one vector."""
    cache = VectorCache(tmp_path / "v.sqlite")
    cache.put("s", ["a"], embedded(0.5))
    cache.put("s", ["a"], embedded(0.7))
    found = cache.get("s", ["a"])
    assert found is not None
    assert found.vectors[0, 0] == 0.5


@pytest.mark.parametrize("keep", [0, 10, 100, 5000])
def test_a_truncated_file_is_set_aside(tmp_path: Path, keep: int) -> None:
    """The rest of the file is kept for inspection; vectors are missing, not wrong."""
    path = tmp_path / "v.sqlite"
    cache = VectorCache(path)
    cache.put("s", [str(n) for n in range(500)], embedded(*range(500)))
    cache.close()
    path.write_bytes(path.read_bytes()[:keep])
    again = VectorCache(path)
    missing = again.missing("s", [str(n) for n in range(500)])
    again.put("s", missing, embedded(*map(float, missing)))
    found = again.get("s", ["7", "499"])
    assert found is not None
    assert found.vectors[:, 0].tolist() == [7, 499]
    assert bool(list(tmp_path.glob("*.damaged-*"))) == (keep > 0)  # an empty file is a new database


def test_a_folder_in_place_of_the_file_is_set_aside(tmp_path: Path) -> None:
    """With its content; for a folder that cannot be written, the message says what to do."""
    (tmp_path / "v.sqlite").mkdir()
    cache = VectorCache(tmp_path / "v.sqlite")
    assert cache.missing("s", ["a"]) == ["a"]
    assert (cache.damaged, (tmp_path / "v.sqlite.damaged-1").is_dir()) == (1, True)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="--store"):
        VectorCache(tmp_path / "file" / "v.sqlite").missing("s", ["a"])


def test_no_texts_have_no_vectors(tmp_path: Path) -> None:
    """Nothing is missing."""
    found = VectorCache(tmp_path / "v.sqlite").get("s", [])
    assert found is not None
    assert (found.vectors.shape, found.truncated.shape) == ((0, 0), (0,))


def test_texts_and_vectors_must_have_the_same_number(tmp_path: Path) -> None:
    """If not, none is stored."""
    cache = VectorCache(tmp_path / "v.sqlite")
    for texts in (["a"], ["a", "b", "c"]):
        with pytest.raises(ValueError, match="zip"):
            cache.put("s", texts, embedded(1, 2))
    assert cache.missing("s", ["a"]) == ["a"]


def test_scores_are_stored_by_query_and_text(tmp_path: Path) -> None:
    """Query and text are not interchangeable, rerankers are separate, and the first score of a pair is kept."""
    cache = ScoreCache(tmp_path / "s.sqlite")
    pairs = [("a", "b"), ("b", "a"), ("ab", ""), ("", "ab"), ("a", "bc"), ("ab", "c")]
    cache.put("s", {pair: Scored(at / 4, float(at)) for at, pair in enumerate(pairs)})
    cache.put("s", {("a", "b"): Scored(9.0, 9.0)})
    found = ScoreCache(tmp_path / "s.sqlite").get("s", [*pairs, ("x", "y")])
    assert found == {pair: Scored(at / 4, float(at), 0.0) for at, pair in enumerate(pairs)}
    assert cache.get("other", pairs) == {}
