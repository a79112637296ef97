"""BEIR folders: `corpus.jsonl`, `queries.jsonl`, `qrels/*.tsv`."""

from typing import Any

from harness.core.errors import DataError
from harness.core.text_files import Line, bare_name
from harness.data.importers.dataset_writer import DatasetWriter
from harness.data.importers.fields import id_of, object_of, text_of
from harness.data.importers.judgments import Asked, read_judgments, write_judged
from harness.data.importers.options import Options
from harness.data.importers.source import Row, Rows, Source


def add_documents(writer: DatasetWriter, rows: Rows) -> None:
    """Add documents with `_id`, `title` and `text`; by default a title becomes the first paragraph of the text."""
    for line, record in rows:
        title, text = text_of(line, record, "title", ""), text_of(line, record, "text")
        name = id_of(line, record, "_id", "id")
        writer.document(line, name, text, title, _metadata(line, record), titles="text")


def read_queries(rows: Rows, asked: dict[str, Asked]) -> None:
    """Add queries with `_id` and `text` to `asked`. Raises DataError if an id occurs twice."""
    for line, record in rows:
        name = id_of(line, record, "_id", "id")
        if name in asked:
            raise line.fault(f"query '{name}' already occurs in {asked[name].line.short}")
        asked[name] = Asked(line, text_of(line, record, "text"), _metadata(line, record))


def _metadata(line: Line, record: Row) -> dict[str, Any]:
    metadata = record.get("metadata")
    return {} if metadata is None else object_of(line, metadata, "metadata")


def import_beir(source: Source, writer: DatasetWriter, options: Options) -> None:
    """Import a BEIR folder; each qrels file becomes a query set of the queries it judges. Raises DataError."""
    add_documents(writer, source.json_lines(source.file("corpus.jsonl")))
    asked: dict[str, Asked] = {}
    read_queries(source.json_lines(source.file("queries.jsonl")), asked)
    files = source.all("qrels/*.tsv")
    if not files:
        raise DataError(f"{source.folder / 'qrels'}: contains no .tsv file")
    for path in files:
        judged = read_judgments(source, path, writer)
        write_judged(writer, bare_name(path).removesuffix(".tsv"), asked, judged, path)
