"""BEIR folders: `corpus.jsonl`, `queries.jsonl`, `qrels/*.tsv`."""

from harness.errors import DataError
from harness.importers.draft import Draft
from harness.importers.fields import id_of, text_of
from harness.importers.judgments import Asked, read_judgments, write_judged
from harness.importers.options import Options
from harness.importers.source import Rows, Source


def add_documents(draft: Draft, rows: Rows) -> None:
    """Add documents of `_id`, `title` and `text`; a title becomes the first paragraph of the text."""
    for line, record in rows:
        title, text = text_of(line, record, "title", ""), text_of(line, record, "text")
        whole = f"{title}\n\n{text}" if title else text
        metadata = record.get("metadata")
        told = metadata if isinstance(metadata, dict) else None
        draft.document(line, id_of(line, record, "_id", "id"), whole, title, told)


def read_queries(rows: Rows) -> dict[str, Asked]:
    """Queries of `_id` and `text`. Raises DataError for an id that stands twice."""
    asked: dict[str, Asked] = {}
    for line, record in rows:
        name = id_of(line, record, "_id", "id")
        if name in asked:
            raise line.fault(f"query '{name}' stands in {asked[name].line.short} already")
        asked[name] = Asked(line, text_of(line, record, "text"), {})
    return asked


def import_beir(source: Source, draft: Draft, options: Options) -> None:
    """Each qrels file is a query set of the queries it judges."""
    add_documents(draft, source.json_lines(source.file("corpus.jsonl")))
    asked = read_queries(source.json_lines(source.file("queries.jsonl")))
    files = source.all("qrels/*.tsv")
    if not files:
        raise DataError(f"{source.folder / 'qrels'}: holds no .tsv file")
    for path in files:
        judged = read_judgments(source, path, draft)
        write_judged(draft, path.name.split(".")[0], asked, judged, path)
