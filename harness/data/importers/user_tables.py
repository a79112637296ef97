"""A user's tables: documents and queries as CSV, TSV, JSONL or JSON arrays."""

from pathlib import Path

from harness.core.errors import DataError
from harness.data.importers.dataset_writer import DatasetWriter
from harness.data.importers.documents_of import add_corpus
from harness.data.importers.options import Options
from harness.data.importers.source import Source
from harness.data.importers.tables import add_documents, add_queries


def import_csv(source: Source, writer: DatasetWriter, options: Options) -> None:
    """Import documents from `documents.csv` and queries from `queries.csv`, or the files named; see `import_tables`."""
    _import(source, writer, options, "csv")


def import_jsonl(source: Source, writer: DatasetWriter, options: Options) -> None:
    """Import `documents.jsonl` and `queries.jsonl`, or the files named; see `import_tables`."""
    _import(source, writer, options, "jsonl")


def _import(source: Source, writer: DatasetWriter, options: Options, suffix: str) -> None:
    named = {name or options.name: source.file(file) for name, file in options.queries.items()}
    if not named and source.path.is_file() and options.corpus:
        named = {options.name: source.path}
    queries = named or {options.name: _first(source, ("queries", "questions"), suffix)}
    if options.corpus:
        add_corpus(source, writer, options)
    else:
        add_documents(writer, options.columns, source.rows(_first(source, ("documents", "corpus"), suffix)))
    for name, path in queries.items():
        add_queries(writer, name, options.columns, source.rows(path), absent=options.absent)


def _first(source: Source, stems: tuple[str, ...], suffix: str) -> Path:
    for stem in stems:
        if found := source.all(f"{stem}.{suffix}"):
            return found[0]
    option = "--corpus" if "corpus" in stems else "--queries"
    raise DataError(f"{source.folder}: contains no {stems[0]}.{suffix}; name the file with {option}")
