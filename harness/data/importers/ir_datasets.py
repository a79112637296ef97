"""Data sets of the catalog of `ir_datasets`, by their ids."""

from pathlib import Path
from typing import Any

from harness.core.errors import ConfigError, DataError, did_you_mean
from harness.core.text_files import Line
from harness.data.importers.dataset_writer import DatasetWriter
from harness.data.importers.judgments import Asked, Judged, note_judgment, write_judged
from harness.data.importers.options import Options
from harness.data.importers.source import Source

_TITLES = ("title", "headline")


def import_ir_datasets(source: Source, writer: DatasetWriter, options: Options) -> None:
    """Import a data set by its id, such as `vaswani` or `beir/scifact/test`, downloading it if needed.

    Its queries with judgments become the set `name`. A query that is judged on several subtopics counts the highest
    grade of each document. Raises DataError if there is no such data set, if it has no judgments or cannot be
    downloaded, ConfigError if the package is missing.
    """
    name = str(source.path)
    dataset = _loaded(name)
    line = Line(Path(name), 1)
    for kind in ("docs", "queries", "qrels"):
        if not dataset.has(kind):
            raise DataError(f"{name}: this data set of ir_datasets has no {kind}; choose one that has, see `{name}/…`")
    try:
        for number, doc in enumerate(dataset.docs_iter(), 1):
            where = Line(Path(name), number, f"docs[{number - 1}]")
            text, title = _text(doc), next((getattr(doc, field) for field in _TITLES if hasattr(doc, field)), "")
            writer.document(where, str(doc.doc_id), text, str(title or ""), titles="text")
        asked = {str(query.query_id): Asked(line, _text(query), {}) for query in dataset.queries_iter()}
        judged = _judged(dataset, writer, line)
    except (RuntimeError, OSError) as error:
        raise DataError(f"{name}: cannot be downloaded: {' '.join(str(error).split())[:160]}") from None
    write_judged(writer, options.name, asked, judged, Path(name))


def _loaded(name: str) -> Any:
    try:
        import ir_datasets
    except ImportError:
        raise ConfigError("ir_datasets is missing; pip install 'retrieval-harness[ir-datasets]'") from None
    try:
        return ir_datasets.load(name)
    except KeyError:
        known = list(ir_datasets.registry)
        raise DataError(f"{name}: no data set of ir_datasets has this id.{did_you_mean(name, known)}") from None


def _text(record: Any) -> str:
    """The text of a document or query: all its texts but id, title and address."""
    left_out = ("doc_id", "query_id", "url", *_TITLES)
    parts = [
        value
        for field in record._fields
        if field not in left_out and isinstance(value := getattr(record, field), str) and value.strip()
    ]
    if hasattr(record, "query_id") and hasattr(record, "default_text"):
        return str(record.default_text())
    return "\n\n".join(parts)


def _judged(dataset: Any, writer: DatasetWriter, line: Line) -> dict[str, Judged]:
    grades: dict[tuple[str, str], int] = {}
    for qrel in dataset.qrels_iter():
        key = (str(qrel.query_id), str(qrel.doc_id))
        if key in grades:
            writer.counts.add("judgments of one document on several subtopics, of which the highest was taken")
        grades[key] = max(int(qrel.relevance), grades.get(key, -(10**6)))
    judged: dict[str, Judged] = {}
    for (query, doc), grade in grades.items():
        note_judgment(judged, writer, line, query, doc, grade)
    return judged
