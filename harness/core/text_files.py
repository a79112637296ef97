"""Lines of a text file with their locations; handles gzip, Zstandard, byte order marks, line ends and encodings."""

import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from harness.core.errors import DataError
from harness.core.json_text import keys_once

Advance = Callable[[int], None]
"""Called with the number of bytes read since the last call."""


COMPRESSED = (".gz", ".zst", ".zstd")
"""The suffixes of compressed text files."""


def bare_name(path: Path) -> str:
    """The name of a file without the suffix of its compression.

    >>> bare_name(Path("a/corpus.jsonl.zst")), bare_name(Path("b.csv"))
    ('corpus.jsonl', 'b.csv')
    """
    return path.name.removesuffix(path.suffix) if path.suffix in COMPRESSED else path.name


class Line(NamedTuple):
    """The location of a record: a line number, or a path `inside` a JSON file such as `data[3].paragraphs[0]`."""

    path: Path
    number: int
    inside: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.inside}" if self.inside else f"{self.path}:{self.number}"

    @property
    def short(self) -> str:
        """The location without the file's path."""
        return self.inside or f"line {self.number}"

    def fault(self, what: str) -> DataError:
        """A DataError for this location; the caller raises it."""
        return DataError(f"{self}: {what}")


def byte_lines(path: Path, advance: Advance | None = None) -> Iterator[tuple[Line, bytes]]:
    """The lines of a file, compressed or not. Raises DataError if it cannot be read."""
    number = done = 0
    try:
        with path.open("rb") as raw:
            for number, content in enumerate(_unpacked(raw, path.suffix), 1):
                yield Line(path, number), content
                # The reader of Zstandard closes the file at its end, before its last lines are read.
                if advance and number % 256 == 0 and not raw.closed:
                    done, before = raw.tell(), done
                    advance(done - before)
        if advance:
            advance(path.stat().st_size - done)
    except (EOFError, zlib.error, gzip.BadGzipFile, _BadZstandardError):
        kind = "gzip" if path.suffix == ".gz" else "Zstandard"
        raise Line(path, number + 1).fault(f"the {kind} file is damaged or cut short") from None
    except OSError as error:
        raise DataError(f"{path}: {_unreadable(error)}") from None


class _BadZstandardError(Exception):
    """The content of a file is not a whole Zstandard file."""


def _unpacked(raw: BinaryIO, suffix: str) -> Iterable[bytes]:
    """The lines of a file that may be compressed, by its suffix."""
    if suffix == ".gz":
        return gzip.GzipFile(fileobj=raw)
    return _zstandard(raw) if suffix in (".zst", ".zstd") else raw


def _zstandard(raw: BinaryIO) -> Iterator[bytes]:
    import pyarrow as pa

    lines = io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd"))
    try:
        yield from lines
    except OSError as error:
        if error.errno:
            raise
        raise _BadZstandardError from error


def _unreadable(error: OSError) -> str:
    return "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"


def text_lines(path: Path, encoding: str = "utf-8", advance: Advance | None = None) -> Iterator[tuple[Line, str]]:
    """The lines of a text file without line ends and byte order mark. Raises DataError at the first fault."""
    for line, content in byte_lines(path, advance):
        yield line, decoded(line, content, encoding).rstrip("\r\n")


def is_comment(text: str) -> bool:
    """Whether a line of a TREC file is blank or a comment."""
    return not text.strip() or text.startswith("#")


def decoded(line: Line, content: bytes, encoding: str = "utf-8") -> str:
    """The text of a line, without a byte order mark. Raises DataError if it is not in this encoding."""
    try:
        return content.decode("utf-8-sig" if line.number == 1 and encoding == "utf-8" else encoding)
    except UnicodeDecodeError as error:
        at = f"byte {error.start + 1} of the line"
        raise line.fault(f"not {encoding.upper()} ({at}); save the file as UTF-8") from None


def json_lines(path: Path, advance: Advance | None = None) -> Iterator[tuple[Line, dict[str, Any]]]:
    """The objects of a JSONL file with their lines; skips blank lines. Raises DataError at the first fault."""
    for line, content in byte_lines(path, advance):
        text = decoded(line, content)
        if text.strip():
            yield line, json_object(line, text)


def json_object(line: Line, text: str) -> dict[str, Any]:
    """The JSON object of a line. Raises DataError if the line is not one JSON object, or has a key twice."""
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=keys_once)
    except json.JSONDecodeError as error:
        raise line.fault(f"not valid JSON: {error.msg} (column {error.colno})") from None
    except RecursionError:
        raise line.fault("not valid JSON: nested too deep") from None
    except ValueError as error:
        raise line.fault(f"not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise line.fault(f"expected a JSON object, not {type(value).__name__}")
    return value


def json_file(path: Path, advance: Advance | None = None) -> Any:
    """The value of a JSON file. Raises DataError with the line of the fault, if it is known."""
    content = b"".join(part for _, part in byte_lines(path, advance))
    text = decoded(Line(path, 1), content) if _is_utf8(content) else _first_bad_line(path)
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=keys_once)
    except json.JSONDecodeError as error:
        raise Line(path, error.lineno).fault(f"not valid JSON: {error.msg} (column {error.colno})") from None
    except RecursionError:
        raise DataError(f"{path}: not valid JSON: nested too deep") from None
    except ValueError as error:
        raise DataError(f"{path}: not valid JSON: {error}") from None


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _first_bad_line(path: Path) -> str:
    """Raises DataError for the line that is not UTF-8."""
    return "".join(text for _, text in text_lines(path))


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON; leave the key out or write null")
