"""Rows of Parquet and Arrow files as JSON values, a batch in memory at a time."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from harness.core.errors import DataError
from harness.core.text_files import Advance, Line

SUFFIXES = (".parquet", ".arrow")


def columnar_rows(path: Path, advance: Advance | None = None) -> Iterator[tuple[Line, dict[str, Any]]]:
    """Yield the rows of a file, numbered from 1. Raises DataError if it cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = done = 0
    try:
        with path.open("rb") as file:
            if path.suffix == ".parquet":
                batches = pq.ParquetFile(file).iter_batches(batch_size=4096)
            else:
                batches = _record_batches(file)
            for batch in batches:
                for row in batch.to_pylist():
                    number += 1
                    yield Line(path, number, f"row {number}"), _plain(row)
                if advance and (at := file.tell()) > done:
                    advance(at - done)
                    done = at
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {' '.join(str(error).split())[:160]}") from None


def _record_batches(file: BinaryIO) -> Iterator[Any]:
    """The batches of an Arrow file, with a footer (Feather) or as a stream."""
    import pyarrow as pa

    footed = file.read(6) == b"ARROW1"
    file.seek(0)
    if not footed:
        return iter(pa.ipc.open_stream(file))
    opened = pa.ipc.open_file(file)
    return (opened.get_batch(at) for at in range(opened.num_record_batches))


def _plain(value: Any) -> Any:
    """A value as JSON: dates and the like as text, without bytes, NaN and infinity as null."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items() if not isinstance(inner, bytes)}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
