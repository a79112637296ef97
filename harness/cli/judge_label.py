"""Grading of a sheet in the terminal, passage by passage; every grade is saved at once."""

from pathlib import Path

from harness.cli.exit_codes import OK
from harness.core.errors import DataError
from harness.running.judging.grading_sheet import GRADES, Row, read_sheet, write_sheet

_HELP = """\
3 answers the question alone; 2 has a fact the answer needs; 1 same topic, but of no use; 0 unrelated
0-3 grade, s skip, b back, q quit; every grade is saved at once
"""


def label(path: Path) -> int:
    """Asks for all missing grades until the last one, `q` or the end of the input; returns the exit code.

    Raises DataError if the sheet is empty.
    """
    rows = read_sheet(path)
    if not rows:
        raise DataError(f"{path}: contains no passages")
    print(_HELP)
    at, skipped = 0, set()
    history: list[int] = []
    while True:
        left = [n for n, row in enumerate(rows) if row.grade is None and n not in skipped]
        if not left:
            break
        at = left[0]
        _show(rows[at], len(rows) - sum(row.grade is None for row in rows) + 1, len(rows))
        try:
            text = input("grade> ").strip().lower()
        except EOFError:
            break
        if text == "q":
            break
        if text == "s":
            skipped.add(at)
        elif text == "b" and history:
            last = history.pop()
            rows[last] = rows[last]._replace(grade=None)
            write_sheet(path, rows)
        elif text.isdecimal() and int(text) in GRADES:
            rows[at] = rows[at]._replace(grade=int(text))
            history.append(at)
            write_sheet(path, rows)
        else:
            print(_HELP)
    graded = sum(row.grade is not None for row in rows)
    print(f"{path}: {graded} of {len(rows)} graded" + ("" if graded == len(rows) else "; run this again to continue"))
    return OK


def _show(row: Row, number: int, total: int) -> None:
    print(f"\n── {number} of {total} " + "─" * 40)
    print(f"question: {row.question}")
    if row.answer:
        print(f"reference answer: {row.answer}")
    print(f"\n{row.passage}\n")
