"""A sheet of passages for people to grade: JSON lines that a person can read, edit and stop halfway through."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from harness.core.errors import DataError
from harness.core.json_text import keys_once

GRADES = (0, 1, 2, 3)


class Row(NamedTuple):
    """One passage of one query. `pool` passages were in the pool it was drawn from, `drawn` of them came on the sheet.

    `pool_digest` identifies those passages: the trials a sheet corrects must select from no others. `grade` is a
    person's, 0 to 3; None until given.
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
    """Replace the file as a whole, so that an interrupted write loses no grade."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text("".join(_line(row) + "\n" for row in rows), encoding="utf-8")
    draft.replace(path)


def _line(row: Row) -> str:
    text = json.dumps(row._asdict(), ensure_ascii=False)
    # Half a surrogate pair has no UTF-8: such a line is written in escapes.
    return json.dumps(row._asdict()) if any("\ud800" <= sign <= "\udfff" for sign in text) else text


def read_sheet(path: Path) -> list[Row]:
    """The rows of a sheet; raises DataError with the line at fault."""
    try:
        # Not splitlines: a passage may hold other signs that end a line, which JSON leaves as they are.
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}; `harness judge sample` makes a sheet") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 (byte {error.start})") from None
    rows = [_row(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]
    seen: set[tuple[str, str]] = set()
    for number, row in enumerate(rows, 1):
        if (row.query, row.passage) in seen:
            raise DataError(f"{path}: passage {number} of the sheet is there twice for query '{row.query}'; remove one")
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
