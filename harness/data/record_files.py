"""Reading the files of a data set record by record, after checking that they are the ones that the manifest pins."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from harness.core.errors import DataError
from harness.core.records import Document
from harness.core.text_files import Line, json_lines
from harness.data.manifest import MANIFEST, PinnedFile, sha256_of
from harness.data.raw_records import RawQuery, document, query

Record = TypeVar("Record", Document, RawQuery)


def verify(pinned: PinnedFile) -> None:
    """Raise DataError if the file is missing, or differs from the one the manifest pins, if it pins one."""
    if not pinned.path.is_file():
        raise DataError(f"{pinned.path}: no such file, but the manifest names it")
    if not pinned.sha256:
        return
    root = next(folder for folder in pinned.path.parents if (folder / MANIFEST).is_file())
    actual = sha256_of(pinned.path)
    if actual != pinned.sha256:
        raise DataError(
            f"{pinned.path}: sha256 is {actual[:12]}…, but the manifest pins {pinned.sha256[:12]}…; restore the file, "
            f"or accept the change with `harness data pin {root}`"
        )


def corpus_lines(pinned: PinnedFile) -> Iterator[tuple[Line, Document]]:
    """Yield the documents of a corpus file. Raises DataError at the first malformed line."""
    for line, value in json_lines(pinned.path):
        yield line, document(line, value)


def read_queries(pinned: PinnedFile) -> list[RawQuery]:
    """All queries of a set as written; their evidence is not compared with the corpus.

    Raises DataError if the file is not the pinned one, is malformed, or repeats an id.
    """
    return unique(pinned, query)


def unique(pinned: PinnedFile, parse: Callable[[Line, dict[str, Any]], Record]) -> list[Record]:
    """The records of a pinned file. Raises DataError for a repeated id and for an empty file."""
    verify(pinned)
    lines: dict[str, int] = {}
    records = []
    for line, value in json_lines(pinned.path):
        record = parse(line, value)
        if record.id in lines:
            raise line.fault(f"id '{record.id}' already occurs in line {lines[record.id]}")
        lines[record.id] = line.number
        records.append(record)
    if not records:
        raise DataError(f"{pinned.path}: contains no {parse.__name__}")
    return records
