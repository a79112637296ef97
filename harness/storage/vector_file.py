"""One Arrow file of vectors: written whole, named by its SHA-256, read by memory mapping."""

import hashlib
import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.core.errors import StoreError
from harness.core.records import Vectors
from harness.storage.mapped import content_sha256, mapped

Keys = npt.NDArray[np.bytes_]
"""SHA-256 of texts, (texts,). Numpy ignores zeros at the end, but all have 32 bytes, so no two of them become equal."""

KEY = np.dtype("S32")
SUFFIX = ".arrow"
FORMAT = b"1"
"""The format number, in the metadata of the file's schema."""


class VectorFile(NamedTuple):
    """The content of a file: keys (texts,), vectors (texts, dimensions), and which texts were truncated, (texts,)."""

    keys: Keys
    vectors: Vectors
    truncated: npt.NDArray[np.bool_]
    mapping: mmap.mmap | None = None
    """The mapped file that keys and vectors are views of; None if they are in memory."""


def packed(content: VectorFile) -> tuple[str, bytes]:
    """Return the name of a file and its bytes."""
    import pyarrow as pa

    count, dimensions = content.vectors.shape
    values = np.ascontiguousarray(content.vectors, np.float32).reshape(-1)
    columns = {
        "key": pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(KEY.itemsize), count, [None, pa.py_buffer(np.ascontiguousarray(content.keys, KEY))]
        ),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(values), dimensions),
        "truncated": pa.array(np.asarray(content.truncated, np.uint8)),
    }
    batch = pa.record_batch(columns, metadata={b"format": FORMAT})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    made = sink.getvalue().to_pybytes()
    return f"{hashlib.sha256(made).hexdigest()}{SUFFIX}", made


def is_sound(name: str, content: bytes) -> bool:
    """Whether the content of a file is what its name says."""
    return name == f"{hashlib.sha256(content).hexdigest()}{SUFFIX}"


def read_vectors(path: Path) -> VectorFile | None:
    """Return the content of a file, as views of the mapped file; None if it is not what its name says.

    Raises OSError if it cannot be read, StoreError if a newer version has written it.
    """
    import pyarrow as pa

    content = mapped(path) if path.stat().st_size else None
    if content is None or content_sha256(content) != path.stem:
        return None
    with pa.ipc.open_file(pa.py_buffer(content)) as reader:
        version, batch = (reader.schema.metadata or {}).get(b"format"), reader.get_batch(0)
    if version != FORMAT:
        message = f"store {path}: is of version {(version or b'?').decode()}, this harness knows {FORMAT.decode()}"
        raise StoreError(f"{message}; upgrade the harness, or name another folder with --store")
    dimensions = batch.column("vector").type.list_size
    keys = np.frombuffer(batch.column("key").buffers()[1], KEY, batch.num_rows)
    vectors = batch.column("vector").flatten().to_numpy().reshape(-1, dimensions)
    return VectorFile(keys, vectors, batch.column("truncated").to_numpy().astype(np.bool_), content)


def keys_of(digests: Sequence[bytes]) -> Keys:
    """Return digests of texts as an array."""
    return np.frombuffer(b"".join(digests), KEY)
