"""Arrays read from memory are those of numpy, whatever their type and shape."""

import io
from typing import Any

import numpy as np
import pytest

from harness.storage.array_file import read_arrays

ARRAYS: dict[str, Any] = {
    "empty": np.zeros(0),
    "number": np.array(3.5),
    "rows": np.arange(12, dtype=np.int32).reshape(3, 4),
    "columns": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "cube": np.arange(24, dtype=np.uint8).reshape(2, 3, 4),
    "flags": np.array([True, False]),
    "texts": np.array(["é", "zwei"]),
    "wide": np.arange(5, dtype=">i8"),
    "a name with ü": np.array([1, 2]),
}


def written(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, allow_pickle=True, **arrays)
    return file.getvalue()


def test_the_arrays_are_those_that_numpy_reads() -> None:
    """Values, types and shapes; they cannot be written to."""
    content = written(**ARRAYS)
    found = read_arrays(content)
    with np.load(io.BytesIO(content)) as expected:
        assert list(found) == expected.files
        for name in expected.files:
            np.testing.assert_array_equal(found[name], expected[name], strict=True)
            assert not found[name].flags.writeable


def test_what_cannot_be_read_is_an_error() -> None:
    """Compressed files, objects, and content that ends too early."""
    file = io.BytesIO()
    np.savez_compressed(file, a=np.zeros(3))
    with pytest.raises(ValueError, match="compressed"):
        read_arrays(file.getvalue())
    with pytest.raises(ValueError, match="objects"):
        read_arrays(written(a=np.array([{}, None], dtype=object)))
    with pytest.raises(Exception, match="zip"):
        read_arrays(written(a=np.zeros(3))[:-40])
