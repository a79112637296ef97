"""MuSiQue files: multi-hop questions with paragraphs, some of which support the answer."""

from typing import Any

from harness.core.text_files import Line
from harness.data.importers.dataset_writer import DatasetWriter, NewQuery, free_name
from harness.data.importers.fields import list_of, object_of, text_of
from harness.data.importers.options import Options
from harness.data.importers.source import Row, Source


def import_musique(source: Source, writer: DatasetWriter, options: Options) -> None:
    """Import a MuSiQue file: all paragraphs form one corpus; each supporting paragraph is an item of evidence.

    A question marked as not answerable has no evidence and no answer; its id ends with `-unanswerable`, as the same
    question is often there with its evidence too. Raises DataError with the line, also for questions without labels.
    """
    path = source.one("the questions", "*.jsonl")
    rows = list(source.json_lines(path))
    known: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    for line, row in rows:
        for title, text, _ in _paragraphs(line, row):
            if (title, text) not in known:
                known[title, text] = free_name(title, taken)
                writer.document(line, known[title, text], text, title)
    for line, row in rows:
        answerable = row.get("answerable", True) is not False
        name = text_of(line, row, "id")
        metadata: dict[str, Any] = {"type": name.partition("__")[0]}
        evidence = [{"doc": known[title, text]} for title, text, needed in _paragraphs(line, row) if needed]
        if answerable and not evidence:
            raise line.fault(f"question '{name}' has no supporting paragraph; the files `test` have no labels")
        writer.query(
            line,
            options.name,
            NewQuery(
                name if answerable else f"{name}-unanswerable",
                text_of(line, row, "question"),
                evidence if answerable else [],
                text_of(line, row, "answer", "") if answerable else None,
                metadata,
            ),
        )
        writer.counts.add("supporting paragraphs" if answerable else "unanswerable questions", max(1, len(evidence)))


def _paragraphs(line: Line, row: Row) -> list[tuple[str, str, bool]]:
    """The paragraphs of a question: title, text, and whether it supports the answer; each once."""
    found: dict[tuple[str, str], bool] = {}
    for at, value in enumerate(list_of(line, row, "paragraphs")):
        record = object_of(line, value, f"paragraphs[{at}]")
        key = (text_of(line, record, "title"), text_of(line, record, "paragraph_text"))
        found[key] = found.get(key, False) or record.get("is_supporting") is True
    return [(title, text, needed) for (title, text), needed in found.items()]
