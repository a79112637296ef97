"""BEIR folders: `corpus.jsonl`, `queries.jsonl`, `qrels/*.tsv`."""

from harness.errors import DataError
from harness.importers.draft import Draft
from harness.importers.fields import text_of
from harness.importers.judgments import Asked, read_judgments, write_judged
from harness.importers.options import Options
from harness.importers.source import Source


def import_beir(source: Source, draft: Draft, options: Options) -> None:
    """A title becomes the first paragraph of the text. Each qrels file is a query set of the queries it judges."""
    for line, record in source.json_lines(source.file("corpus.jsonl")):
        title, text = text_of(line, record, "title", ""), text_of(line, record, "text")
        whole = f"{title}\n\n{text}" if title else text
        draft.document(line, text_of(line, record, "_id"), whole, title, record.get("metadata"))
    asked: dict[str, Asked] = {}
    for line, record in source.json_lines(source.file("queries.jsonl")):
        name = text_of(line, record, "_id")
        if name in asked:
            raise line.fault(f"query '{name}' stands in {asked[name].line.short} already")
        asked[name] = Asked(line, text_of(line, record, "text"), {})
    files = source.all("qrels/*.tsv")
    if not files:
        raise DataError(f"{source.folder / 'qrels'}: holds no .tsv file")
    for path in files:
        judged = read_judgments(source, path, draft)
        write_judged(draft, path.name.split(".")[0], asked, judged, path)
