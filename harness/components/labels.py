"""Read recorded relevance grades, by people or by a judge, from CSV, JSON lines or TREC qrels."""

import csv
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from harness.core.errors import DataError
from harness.core.plurals import plural
from harness.core.text_files import Line, is_comment, json_lines, text_lines

QUERY = ("query", "query_id", "qid", "question")
PASSAGE = ("passage", "passage_id", "pid", "doc", "doc_id", "docid", "text")
GRADE = ("grade", "label", "relevance", "rel", "score")
RATERS = ("people", "judge")
"""Columns of a file that holds grades by both people and a judge."""
GREATEST = 9


@dataclass(frozen=True)
class Labels:
    """Grades by (query, passage), where each of the two is an id or a text, as in the file.

    If a passage occurs twice for a query, such as one text under two ids, both grades are kept, in file order.
    `unjudged` counts the lines with a grade below 0, which TREC uses for pooled passages that were not judged.
    """

    path: Path
    grades: Mapping[tuple[str, str], Sequence[int]]
    unjudged: int = 0

    @property
    def count(self) -> int:
        """The number of grades."""
        return sum(map(len, self.grades.values()))

    def of(self, queries: Sequence[str], passages: Sequence[str]) -> Sequence[int]:
        """The grades of the first (query, passage) pair found in the file; empty if there is none."""
        names = ((query, passage) for passage in passages for query in queries)
        return next((self.grades[name] for name in names if name in self.grades), ())


def read_labels(path: Path, rater: str | None = None) -> Labels:
    """Read the labels of a file; `rater` names the grade column if the file holds grades by several raters.

    CSV, TSV and JSON lines have a query, a passage (id or text) and a grade; any other file is read as qrels: query,
    iteration, passage, grade. A grade is a whole number up to 9; lines with a grade below 0 are counted and skipped.
    Raises DataError with file and line if the file cannot be read, is malformed or contains no label.
    """
    read = _COLUMNAR.get(path.suffix.lower(), _qrels)
    grades: dict[tuple[str, str], list[int]] = {}
    unjudged = 0
    for line, row in read(path):
        query, passage = _named(line, row, QUERY), _named(line, row, PASSAGE)
        if rater and rater not in row:
            raise line.fault(f"has no column '{rater}'; columns: {', '.join(map(str, row))[:100]}")
        grade = _grade(line, row[rater] if rater else _named(line, row, GRADE))
        if grade < 0:
            unjudged += 1
        else:
            grades.setdefault((query, passage), []).append(grade)
    if not grades:
        raise DataError(f"{path}: contains no label")
    return Labels(path, grades, unjudged)


def both_raters(path: Path) -> bool:
    """Whether a file has a column `people` and a column `judge`."""
    read = _COLUMNAR.get(path.suffix.lower())
    first = next(read(path), None) if read else None
    return first is not None and all(rater in first[1] for rater in RATERS)


def labels_sha256(path: Path) -> str:
    """The SHA-256 of the file's content. Raises DataError if the file cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None


def _table(path: Path, delimiter: str) -> Iterator[tuple[Line, Mapping[str, Any]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, delimiter=delimiter)
            for row in reader:
                line = Line(path, reader.line_num)
                if None in row or None in row.values():
                    raise line.fault(f"expected {plural(len(reader.fieldnames or ()), 'column')}")
                yield line, row
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: {error}") from None


def _json(path: Path) -> Iterator[tuple[Line, Mapping[str, Any]]]:
    return json_lines(path)


_COLUMNAR: Mapping[str, Callable[[Path], Iterator[tuple[Line, Mapping[str, Any]]]]] = {
    ".csv": partial(_table, delimiter=","),
    ".tsv": partial(_table, delimiter="\t"),
    ".jsonl": _json,
    ".json": _json,
}
"""Readers of files with named columns, by suffix."""


def _qrels(path: Path) -> Iterator[tuple[Line, Mapping[str, Any]]]:
    for line, text in text_lines(path):
        if is_comment(text):
            continue
        columns = text.split()
        if len(columns) < 4:
            raise line.fault(f"expected query, iteration, passage and grade, got {plural(len(columns), 'column')}")
        yield line, {"query": columns[0], "passage": columns[2], "grade": columns[3]}


def _named(line: Line, row: Mapping[str, Any], names: Sequence[str]) -> str:
    found = next((name for name in names if name in row), None)
    if found is None:
        raise line.fault(f"has no column {' or '.join(names)}; columns: {', '.join(map(str, row))[:100]}")
    value = row[found]
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        raise line.fault(f"{found}: expected text, got {value!r:.40}")
    return str(value)


def _grade(line: Line, value: Any) -> int:
    try:
        grade = float(value) if not isinstance(value, bool) else float("nan")
        if grade != int(grade) or grade > GREATEST:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise line.fault(f"grade: expected a whole number from 0 to {GREATEST}, got {value!r:.40}") from None
    return int(grade)
