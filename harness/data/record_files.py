"""Reading the files of a data set record by record, after checking that they are the ones that the manifest pins."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from harness.core.columnar import SUFFIXES, columnar_rows
from harness.core.errors import DataError
from harness.core.records import Document
from harness.core.text_files import Advance, Line, bare_name, json_lines
from harness.data.manifest import MANIFEST, PinnedFile, sha256_of
from harness.data.raw_records import RawQuery, document, query
from harness.data.remote_files import fetch

Record = TypeVar("Record", Document, RawQuery)


def verify(pinned: PinnedFile) -> None:
    """Raise DataError if the file is missing, or differs from the one the manifest pins, if it pins one.

    A file at a URL is fetched if it is not on this machine, and must be pinned.
    """
    if pinned.url:
        if not pinned.sha256:
            raise DataError(f"{pinned.url}: a file at a URL must be pinned; `harness data pin` fetches and pins it")
        if not pinned.path.is_file():
            fetch(pinned.url, pinned.path)
    if not pinned.path.exists():
        raise DataError(f"{pinned.path}: no such file, but the manifest names it")
    if not pinned.sha256:
        return
    actual = sha256_of(pinned.path)
    if actual != pinned.sha256:
        root = next((folder for folder in pinned.path.parents if (folder / MANIFEST).is_file()), "DATA_SET")
        raise DataError(
            f"{pinned.url or pinned.path}: sha256 is {actual[:12]}…, but the manifest pins {pinned.sha256[:12]}…; "
            f"restore the file, or accept the change with `harness data pin {root}`"
        )


def records(path: Path, advance: Advance | None = None) -> Iterator[tuple[Line, dict[str, Any]]]:
    """Yield the records of a file of JSON lines or Parquet, or of all such files in a folder, by name.

    Raises DataError at the first line that cannot be read, and for a folder without such a file. `advance` gets the
    bytes read.
    """
    if path.is_dir():
        parts = [part for part in sorted(path.rglob("*")) if bare_name(part).endswith((".jsonl", *SUFFIXES))]
        if not parts:
            raise DataError(f"{path}: contains no file of documents (.jsonl, compressed or not, or .parquet)")
        for part in parts:
            yield from records(part, advance)
    elif path.suffix in SUFFIXES:
        for line, row in columnar_rows(path, advance):
            # A column that is empty in a row is like a key that is left out.
            yield line, {name: value for name, value in row.items() if value is not None}
    else:
        yield from json_lines(path, advance)


def corpus_lines(pinned: PinnedFile, advance: Advance | None = None) -> Iterator[tuple[Line, Document]]:
    """Yield the documents of a corpus file. Raises DataError at the first malformed line."""
    for line, value in records(pinned.path, advance):
        yield line, document(line, value)


def read_queries(pinned: PinnedFile) -> list[RawQuery]:
    """All queries of a set as written; their evidence is not compared with the corpus.

    Raises DataError if the file is not the pinned one, is malformed, or repeats an id.
    """
    return unique(pinned, query)


def unique(pinned: PinnedFile, parse: Callable[[Line, dict[str, Any]], Record]) -> list[Record]:
    """The records of a pinned file. Raises DataError for a repeated id and for an empty file."""
    verify(pinned)
    lines: dict[str, Line] = {}
    found = []
    for line, value in records(pinned.path):
        record = parse(line, value)
        if record.id in lines:
            raise repeated(line, record.id, lines[record.id])
        lines[record.id] = line
        found.append(record)
    if not found:
        raise DataError(f"{pinned.path}: contains no {parse.__name__}")
    return found


def repeated(line: Line, name: str, earlier: Line) -> DataError:
    """The error of an id that occurred before."""
    return line.fault(f"id '{name}' already occurs in {earlier.short if earlier.path == line.path else earlier}")
