"""Relevance judgments (qrels) in the formats of TREC and BEIR."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from harness.core.errors import DataError
from harness.core.plurals import plural
from harness.core.text_files import Line, is_comment
from harness.data.importers.dataset_writer import DatasetWriter, NewQuery
from harness.data.importers.source import Source

_HEADS = frozenset(["score", "rel", "relevance", "label", "grade", "judgment", "judgement"])


class Judged(NamedTuple):
    """The judgments of one query: the place of the first one, and the grades by document, in order."""

    line: Line
    grades: dict[str, int]


class Asked(NamedTuple):
    """A query as read from the source."""

    line: Line
    text: str
    metadata: dict[str, Any]


def read_judgments(source: Source, path: Path, writer: DatasetWriter) -> dict[str, Judged]:
    """Judgments by query, from lines `query document grade` (tab-separated) or `query iteration document grade`.

    A first line with a name such as `score` in place of the grade is a header; if that is the third tab-separated
    column, all lines are read with three columns. Lines that begin with # are comments, and further columns are
    ignored, as in trec_eval. A repeated judgment counts once. Raises DataError if judgments contradict each other.
    """
    judged: dict[str, Judged] = {}
    width = 0
    for line, text in source.text_lines(path):
        if line.number == 1:
            names = [name.strip().lower() for name in text.split("\t")]
            width = 3 if len(names) >= 3 and names[2] in _HEADS else 0
        columns = _columns(line, text, writer, width)
        if not columns or (line.number == 1 and columns[-1].lower() in _HEADS):
            continue
        query, doc, grade = columns[0], columns[-2], _grade(line, columns[-1])
        note_judgment(judged, writer, line, query, doc, grade)
    if not judged:
        raise DataError(f"{path}: contains no judgment")
    return judged


def note_judgment(
    judged: dict[str, Judged], writer: DatasetWriter, line: Line, query: str, doc: str, grade: int
) -> None:
    """Add a judgment to `judged`. Raises DataError if it contradicts an earlier one."""
    grades = judged.setdefault(query, Judged(line, {})).grades
    if doc not in grades:
        grades[doc] = grade
    elif grades[doc] == grade:
        writer.counts.add("repeated judgments, counted once")
    else:
        message = f"query '{query}' judges document '{doc}' twice"
        raise line.fault(f"{message}, {grade} here and {grades[doc]} before; keep only one of the two")


def _columns(line: Line, text: str, writer: DatasetWriter, width: int) -> list[str]:
    """The columns of a line to read: the first `width` tab-separated ones; if `width` is 0, by their number."""
    if is_comment(text):
        return []
    tabbed = text.split("\t")
    if width and len(tabbed) > width:
        writer.counts.add("judgments with further columns, left out", line.number > 1)
        tabbed = tabbed[:width]
    if len(tabbed) in (3, 4) and all(part.strip() for part in tabbed):
        return [part.strip() for part in tabbed]
    columns = text.split()
    if len(columns) < 4:
        message = "expected query, document and score separated by tabs, or query, iteration, document and grade"
        raise line.fault(f"{message}, got {plural(len(columns), 'column')}")
    if len(columns) > 4:
        writer.counts.add("judgments with further columns, left out")
    return columns[:4]


def _grade(line: Line, text: str) -> int:
    try:
        grade = float(text)
        if grade != int(grade) or abs(grade) > 1e6:
            raise ValueError
    except (ValueError, OverflowError):
        raise line.fault(f"score: expected a whole number of at most 1000000, got {text!r:.40}") from None
    return int(grade)


def write_judged(
    writer: DatasetWriter, queries: str, asked: Mapping[str, Asked], judged: Mapping[str, Judged], path: Path
) -> None:
    """Add the queries that a qrels file judges as the set `queries`, in the order of `asked`.

    Raises DataError if a judged query is not in `asked`.
    """
    for query, found in judged.items():
        if query not in asked:
            raise found.line.fault(f"no query '{query}' among the {plural(len(asked), 'query')}")
    for name, (line, text, metadata) in asked.items():
        if name in judged:
            grades = judged[name].grades
            items = (writer.judged(queries, doc, grade) for doc, grade in grades.items())
            made = NewQuery(
                name,
                text,
                [item for item in items if item],
                metadata=metadata or {},
                irrelevant=[doc for doc, grade in grades.items() if grade == 0],
                # As in trec_eval: pooled for judging, but not judged.
                unjudged=[doc for doc, grade in grades.items() if grade < 0],
            )
            writer.query(line, queries, made)
    left = len(asked) - len(judged)
    if left:
        writer.counts.add(f"queries without a judgment in {path.name}, left out", left)
