"""Cells of tables: finding the column of a part, and converting its value."""

import json
import math
from collections.abc import Mapping
from typing import Any

from harness.core.text_files import Line
from harness.data.importers.source import Row

USUAL = {
    "doc.id": ("id", "_id", "doc_id", "docid", "doc"),
    "doc.text": ("text", "content", "contents", "body"),
    "doc.title": ("title",),
    "query.id": ("id", "_id", "query_id", "qid"),
    "query.text": ("text", "question", "query", "user_input"),
    "query.answer": ("answer", "reference_answer"),
    "query.type": ("type",),
    "query.group": ("group",),
    "evidence.doc": ("doc", "doc_id", "document"),
    "evidence.start": ("start",),
    "evidence.end": ("end",),
    "evidence.quote": ("quote",),
    "evidence.grade": ("grade",),
    "evidence.chunk": ("golden_chunk_uuids", "golden_chunk_ids", "gold_chunk_ids", "relevant_chunk_ids", "chunk_ids"),
}
"""The column names that are tried for each part that `--map` does not name."""


def cell(row: Row, column: str | None) -> Any:
    """The value in a column; None if there is no such column."""
    return None if column is None else row.get(column)


def several(value: Any) -> list[Any]:
    """A cell as a list: the list itself, a JSON list written as text, or the single value; empty for no value."""
    if value in (None, ""):
        return []
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):
            return [value]
        return read if isinstance(read, list) else [value]
    return value if isinstance(value, list) else [value]


def column_of(columns: Mapping[str, str], row: Row, name: str) -> str | None:
    """The column of a part: the one given in `columns`, or the first of its usual names in the row; else None."""
    if name in columns:
        return columns[name]
    return next((usual for usual in USUAL[name] if usual in row), None)


def needed(line: Line, row: Row, column: str | None, name: str) -> str:
    """The text of a required part. Raises DataError if the column is missing or its value is not text."""
    if column is None or column not in row:
        given = f"no column '{column}'" if column else f"no column for {name}"
        raise line.fault(
            f"{given}; columns: {', '.join(map(str, row))[:100]}; name the right one with --map {name}=COLUMN"
        )
    value = row[column]
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise line.fault(f"{column}: expected text, got {value!r:.60}")
    return str(value)


def text_in(line: Line, value: Any, name: str) -> str:
    """A value as text; "" if there is none. Raises DataError for other types than text and whole numbers."""
    if value is None:
        return ""
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise line.fault(f"{name}: expected text, got {value!r:.60}")
    return str(value)


def quotes_in(value: Any) -> list[Any]:
    """A cell as a list of quotes; only a JSON list of texts is read as a list, as a quote may begin with a bracket."""
    found = several(value)
    return found if isinstance(value, list) or all(isinstance(one, str) for one in found) else [value]


def grade_in(line: Line, value: Any) -> float:
    """A grade, which may be negative. Raises DataError if it is not a number or larger than 1,000,000."""
    try:
        grade = float(value)
    except (TypeError, ValueError):
        grade = math.nan
    if isinstance(value, bool) or not abs(grade) <= 1e6:
        raise line.fault(f"evidence.grade: expected a number of at most 1000000, got {value!r:.40}")
    return grade


def metadata_of(line: Line, rest: Row) -> dict[str, Any]:
    """The metadata in the other columns of a row, merged with an object in the column `metadata`. Raises DataError."""
    inner = rest.pop("metadata", None)
    if inner not in (None, "") and not isinstance(inner, dict):
        raise line.fault(f"metadata: expected an object, got {inner!r:.60}")
    kept = {key: value for key, value in rest.items() if value not in (None, "")}
    return kept | (inner or {})
