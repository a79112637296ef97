"""Grading sheets: passages for people to grade, as JSON lines that can be edited by hand and left half done."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from harness.core.errors import DataError
from harness.core.json_text import keys_once

GRADES = (0, 1, 2, 3)


class Row(NamedTuple):
    """One passage of one query. It was drawn from a pool of `pool` passages, `drawn` of which are on the sheet.

    `pool_digest` identifies the pool: a sheet can correct only trials that select from the same one. `grade` is a
    person's grade, 0 to 3, or None if not graded yet.
    """

    query: str
    question: str
    answer: str
    passage: str
    pool: int
    drawn: int
    pool_digest: str
    grade: int | None = None


def write_sheet(path: Path, rows: Sequence[Row]) -> None:
    """Write a sheet, replacing the file at once so that an interrupted write loses no grades."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.draft")
    temporary.write_text("".join(_line(row) + "\n" for row in rows), encoding="utf-8")
    temporary.replace(path)


def _line(row: Row) -> str:
    text = json.dumps(row._asdict(), ensure_ascii=False)
    # An unpaired surrogate cannot be encoded as UTF-8: such a line is written with escapes.
    return json.dumps(row._asdict()) if any("\ud800" <= character <= "\udfff" for character in text) else text


def read_sheet(path: Path) -> list[Row]:
    """Return the rows of a sheet. Raises DataError with the line if the file is missing or invalid."""
    try:
        # Not splitlines: JSON does not escape other line separators, such as U+2028, that a passage may contain.
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}; create a sheet with `harness judge sample`") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 (byte {error.start})") from None
    rows = [_row(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]
    seen: set[tuple[str, str]] = set()
    for number, row in enumerate(rows, 1):
        if (row.query, row.passage) in seen:
            raise DataError(f"{path}: passage {number} of the sheet occurs twice for query '{row.query}'; remove one")
        seen.add((row.query, row.passage))
    return rows


def _row(line: str, where: str) -> Row:
    try:
        shown = json.loads(line, object_pairs_hook=keys_once)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON: {error}") from None
    if not isinstance(shown, dict) or set(shown) != set(Row._fields):
        raise DataError(f"{where}: expected an object with the keys {', '.join(Row._fields)}")
    row = Row(**shown)
    texts = (row.query, row.question, row.answer, row.passage, row.pool_digest)
    if not all(isinstance(text, str) for text in texts):
        raise DataError(f"{where}: query, question, answer, passage and pool_digest must be text")
    if type(row.pool) is not int or type(row.drawn) is not int or not 0 < row.drawn <= row.pool:
        raise DataError(f"{where}: pool and drawn must be whole numbers, 0 < drawn <= pool")
    if row.grade is not None and (type(row.grade) is not int or row.grade not in GRADES):
        raise DataError(f"{where}: grade: expected 0, 1, 2, 3 or null, got {json.dumps(row.grade)}")
    return row
