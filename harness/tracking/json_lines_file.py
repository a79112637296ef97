"""A file of JSON lines that several processes append to, and that survives the death of any of them."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.core.errors import DataError
from harness.core.json_text import plain
from harness.core.secrecy import redact_values
from harness.storage.locks import locked


class JsonLinesFile:
    """Appends lines under a lock and reads them. Raises OSError if the file cannot be created."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self.writing():
            path.touch()

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock of the file's folder."""
        with locked(self.path.parent / ".lock"):
            yield

    def append(self, line: Mapping[str, Any]) -> None:
        """Append a line without secrets; the caller must hold the lock. Values that are not finite become null."""
        text = json.dumps(redact_values(plain(line)), ensure_ascii=False, allow_nan=False) + "\n"
        with self.path.open("rb+") as file:
            file.seek(_end_of_lines(self.path))
            file.truncate()  # drops what a killed process left of a line
            file.write(text.encode("utf-8", "replace"))

    def lines(self, start: int = 0) -> Iterator[tuple[Mapping[str, Any], int]]:
        """Yield the lines after `start` bytes, each with the number of bytes up to its end.

        A last line that a killed process left incomplete is skipped. Raises DataError for a line that is not JSON.
        """
        with self.path.open("rb") as file:
            file.seek(start)
            for text in file:
                if not text.endswith(b"\n"):
                    return
                start += len(text)
                try:
                    line = json.loads(text)
                except ValueError:
                    message = f"{self.path}: the line that ends at byte {start} is not JSON"
                    raise DataError(f"{message}; restore the file, or remove the line") from None
                if isinstance(line, dict):
                    yield line, start


def _end_of_lines(path: Path) -> int:
    """The number of bytes up to the end of the last complete line."""
    end = path.stat().st_size
    with path.open("rb") as file:
        while end:
            begin = max(0, end - 65536)
            file.seek(begin)
            found = file.read(end - begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            end = begin
    return 0
