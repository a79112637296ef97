"""The review sheet: a CSV table of generated queries for people to keep, change or drop, and its application."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.core.errors import DataError
from harness.core.records import Document
from harness.core.text_files import Line
from harness.data.synthesis.generate import copies_elsewhere

COLUMNS = ("verdict", "question", "answer", "type", "evidence", "context", "notes", "document", "id")
VERDICTS = ("keep", "drop", "")
_AROUND = 200
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Characters at the beginning of a cell that make a spreadsheet read it as a formula."""
_LEXICAL = 0.6


class Reviewed(NamedTuple):
    """The records after the review, and the numbers of kept, changed and dropped ones, and of those without a verdict.

    `ignored` is the number of rows without a verdict whose question or answer was changed.
    """

    records: list[dict[str, Any]]
    kept: int
    changed: int
    dropped: int
    open: int
    ignored: int = 0


def write_sheet(path: Path, records: Sequence[Mapping[str, Any]], documents: Mapping[str, Document]) -> None:
    """Write the sheet as CSV. Reviewers write keep or drop into `verdict`, and may change question and answer."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for record in records:
        writer.writerow([_guarded(cell) for cell in _row(record, documents)])
    # Without a byte order mark, spreadsheets do not recognize UTF-8.
    path.write_text(out.getvalue(), encoding="utf-8-sig", newline="")


def is_sheet(path: Path) -> bool:
    """Whether a file begins like a review sheet; False if it cannot be read."""
    try:
        return path.read_bytes()[:64].removeprefix(b"\xef\xbb\xbf").startswith(b"verdict")
    except OSError:
        return False


def _row(record: Mapping[str, Any], documents: Mapping[str, Document]) -> Iterator[str]:
    synthetic = record["metadata"]["synthetic"]
    verdict = "keep" if synthetic["reviewed"] else ""
    quotes = [item["quote"] for item in record["evidence"]]
    contexts = [_context(item, documents[item["doc"]].text) for item in record["evidence"]]
    notes = []
    if synthetic["overlap"] > _LEXICAL:
        notes.append(f"{synthetic['overlap']:.0%} of its words are in the evidence")
    if more := copies_elsewhere(record, documents):
        notes.append(f"the evidence occurs {more} more times in the document")
    if not quotes:
        notes.append("no answer: make sure that no document answers it")
    yield from (verdict, record["text"], record.get("answer", ""), record["metadata"]["type"])
    yield from ("\n---\n".join(quotes), "\n---\n".join(contexts), "; ".join(notes), synthetic["about"], record["id"])


def _context(item: Mapping[str, Any], text: str) -> str:
    """The evidence between ⟦ ⟧, with the text around it."""
    start, end = item["start"], item["end"]
    before, after = text[max(0, start - _AROUND) : start], text[end : end + _AROUND]
    return f"…{before}⟦{text[start:end]}⟧{after}…"


def _guarded(cell: str) -> str:
    return f"'{cell}" if cell.startswith((*_FORMULA, "'")) else cell


def apply_sheet(path: Path, records: Sequence[Mapping[str, Any]]) -> Reviewed:
    """Apply the verdicts of a sheet: dropped records are left out, kept ones are updated and marked as reviewed.

    Raises DataError with file and line if the sheet is malformed or does not belong to these records.
    """
    rows = dict(_rows(path))
    known = {record["id"] for record in records}
    for name, (line, row) in rows.items():
        # The record may have been dropped when the sheet was applied before.
        if name not in known and row["verdict"] != "drop":
            raise line.fault(f"id '{name}' is not a query of the set")
    made: list[dict[str, Any]] = []
    kept = changed = dropped = ignored = 0
    for record in records:
        row = rows[record["id"]][1] if record["id"] in rows else {}
        verdict = row.get("verdict", "")
        if verdict == "drop":
            dropped += 1
            continue
        if verdict == "keep":
            kept += 1
            after = _changed(record, row)
            changed += (after["text"], after.get("answer")) != (record["text"], record.get("answer"))
            made.append(after)
        else:
            ignored += bool(row) and (row["question"], row["answer"]) != (record["text"], record.get("answer", ""))
            made.append(dict(record))
    return Reviewed(made, kept, changed, dropped, len(made) - kept, ignored)


def _rows(path: Path) -> Iterator[tuple[str, tuple[Line, dict[str, str]]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            content = file.read()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 (byte {error.start}); save the sheet as CSV in UTF-8") from None
    head = content.partition("\n")[0]
    # In many locales, spreadsheets separate cells by semicolons.
    delimiter = ";" if head.count(";") > head.count(",") else ","
    csv.field_size_limit(2**31 - 1)
    reader = csv.DictReader(io.StringIO(content, newline=""), restval="", restkey="", delimiter=delimiter)
    missing = {"verdict", "question", "answer", "id"} - set(reader.fieldnames or ())
    if missing:
        raise Line(path, 1).fault(f"no column {', '.join(sorted(missing))}; a sheet has {', '.join(COLUMNS)}")
    seen: set[str] = set()
    for row in reader:
        line = Line(path, reader.line_num)
        plain = {name: _plain(str(cell)) for name, cell in row.items()}
        plain["verdict"] = plain["verdict"].strip().lower()
        if plain["verdict"] not in VERDICTS:
            raise line.fault(f"verdict: expected keep, drop or nothing, got {plain['verdict']!r:.40}")
        if plain["verdict"] == "keep" and not plain["question"].strip():
            raise line.fault("question: is empty; write drop to remove the query")
        if plain["id"] in seen:
            raise line.fault(f"id '{plain['id']}' occurs twice")
        seen.add(plain["id"])
        yield plain["id"], (line, plain)


def _plain(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and cell[1:].startswith((*_FORMULA, "'")) else cell


def _changed(record: Mapping[str, Any], row: Mapping[str, str]) -> dict[str, Any]:
    metadata = record.get("metadata", {})
    before = metadata.get("synthetic")
    synthetic = {**(before if isinstance(before, dict) else {}), "reviewed": True}
    made = {**record, "text": row["question"].strip(), "metadata": {**metadata, "synthetic": synthetic}}
    made.pop("answer", None)
    answer = row["answer"].strip()
    return made | ({"answer": answer} if answer else {})
