"""Grades of passages in a file, by people or by a judge: CSV, JSON lines, or TREC qrels."""

import csv
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from harness.core.errors import DataError
from harness.core.text_files import Line, is_comment, json_lines, text_lines

QUERY = ("query", "query_id", "qid", "question")
PASSAGE = ("passage", "passage_id", "pid", "doc", "doc_id", "docid", "text")
GRADE = ("grade", "label", "relevance", "rel", "score")
RATERS = ("people", "judge")
"""Columns of a file that holds the grades of both."""
GREATEST = 9


@dataclass(frozen=True)
class Labels:
    """Grades by (query, passage), each an id or a text as the file has it.

    A passage that occurs twice for a query, such as one text under two ids, keeps both grades, in order. `unjudged` are
    the lines of a grade below 0, which TREC gives to passages that were put before the judges and left.
    """

    path: Path
    grades: Mapping[tuple[str, str], Sequence[int]]
    unjudged: int = 0

    @property
    def count(self) -> int:
        return sum(map(len, self.grades.values()))

    def of(self, queries: Sequence[str], passages: Sequence[str]) -> Sequence[int]:
        """The grades under the first name that the file knows, of those of a query and those of a passage."""
        names = ((query, passage) for passage in passages for query in queries)
        return next((self.grades[name] for name in names if name in self.grades), ())


def read_labels(path: Path, rater: str | None = None) -> Labels:
    """The labels of a file; `rater` names the column of a file that holds the grades of several.

    CSV, TSV and JSON lines have a query, a passage (id or text) and a grade; anything else is read as qrels: query,
    iteration, passage, grade. A grade is a whole number; lines with one below 0 are left out, and counted. Raises
    DataError with file and line.
    """
    read = _COLUMNAR.get(path.suffix.lower(), _qrels)
    grades: dict[tuple[str, str], list[int]] = {}
    unjudged = 0
    for line, row in read(path):
        query, passage = _named(line, row, QUERY), _named(line, row, PASSAGE)
        if rater and rater not in row:
            raise line.fault(f"has no column '{rater}'; there is {', '.join(map(str, row))[:100]}")
        grade = _grade(line, row[rater] if rater else _named(line, row, GRADE))
        if grade < 0:
            unjudged += 1
        else:
            grades.setdefault((query, passage), []).append(grade)
    if not grades:
        raise DataError(f"{path}: holds no label")
    return Labels(path, grades, unjudged)


def both_raters(path: Path) -> bool:
    """Whether a file has a column of grades by people and one by a judge."""
    read = _COLUMNAR.get(path.suffix.lower())
    first = next(read(path), None) if read else None
    return first is not None and all(rater in first[1] for rater in RATERS)


def labels_sha256(path: Path) -> str:
    """What identifies the labels by content; raises DataError where they cannot be read."""
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
                    raise line.fault(f"expected {len(reader.fieldnames or ())} columns")
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
"""How to read a file whose columns have names, by suffix."""


def _qrels(path: Path) -> Iterator[tuple[Line, Mapping[str, Any]]]:
    for line, text in text_lines(path):
        if is_comment(text):
            continue
        columns = text.split()
        if len(columns) < 4:
            raise line.fault(f"expected query, iteration, passage and grade, got {len(columns)} columns")
        yield line, {"query": columns[0], "passage": columns[2], "grade": columns[3]}


def _named(line: Line, row: Mapping[str, Any], names: Sequence[str]) -> str:
    found = next((name for name in names if name in row), None)
    if found is None:
        raise line.fault(f"has no column {' or '.join(names)}; there is {', '.join(map(str, row))[:100]}")
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
