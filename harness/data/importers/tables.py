"""Documents and queries from tables of any kind, with configurable columns."""

from collections.abc import Iterator, Mapping

from harness.core.errors import DataError, did_you_mean
from harness.core.text_files import Line
from harness.data.importers.cells import cell, column_of, metadata_of, needed, text_in
from harness.data.importers.dataset_writer import DatasetWriter
from harness.data.importers.query_table import QueryTable, Question
from harness.data.importers.source import Row, Rows


def import_tables(
    writer: DatasetWriter,
    columns: Mapping[str, str],
    documents: Rows,
    queries: Mapping[str, Rows],
    *,
    absent: bool = False,
) -> None:
    """Add documents and query sets from records whose columns have the names in `columns`, or the usual names.

    Rows with the same query id are one query. Evidence is a document (or a list of them), a quote in it, or offsets
    with or without the quote; a quote alone is searched for in all documents. A quote that occurs several times in its
    document gets all these places. Other columns become metadata. Raises DataError for a quote that does not occur,
    even if white space is ignored, and for an unknown document, unless `absent` keeps such evidence as always missed.
    """
    add_documents(writer, columns, documents)
    for name, rows in queries.items():
        add_queries(writer, name, columns, rows, absent=absent)


def add_documents(writer: DatasetWriter, columns: Mapping[str, str], documents: Rows) -> None:
    """Add the documents of a table; columns without a part become metadata."""
    for line, row in _noted(columns, ("doc.",), documents):
        known = {name: column_of(columns, row, name) for name in ("doc.id", "doc.text", "doc.title")}
        name, text = needed(line, row, known["doc.id"], "doc.id"), needed(line, row, known["doc.text"], "doc.text")
        title = text_in(line, cell(row, known["doc.title"]), "doc.title")
        rest = {key: value for key, value in row.items() if key and key not in known.values()}
        writer.document(line, name, text, title, metadata_of(line, rest))


def add_queries(
    writer: DatasetWriter, name: str, columns: Mapping[str, str], rows: Rows, *, absent: bool = False
) -> None:
    """Add the queries of a table as the set `name`; see `import_tables`."""
    table = QueryTable(writer, name, columns, absent=absent)
    table.add(_questions(columns, _noted(columns, ("query.", "evidence."), rows)))


def _noted(columns: Mapping[str, str], parts: tuple[str, ...], rows: Rows) -> Iterator[tuple[Line, Row]]:
    """The rows. Raises DataError at the end if no row has a column that `columns` names."""
    left = {name: column for name, column in columns.items() if name.startswith(parts)}
    seen: dict[str, None] = {}
    line: Line | None = None
    for line, row in rows:
        seen.update(dict.fromkeys(map(str, row)))
        left = {name: column for name, column in left.items() if column not in row}
        yield line, row
    for name, column in left.items() if line else ():
        known = f"{did_you_mean(column, seen)} Columns: {', '.join(seen)[:120]}"
        raise DataError(f"{line.path if line else ''}: --map {name}={column}: no row has a column '{column}'.{known}")


def _questions(columns: Mapping[str, str], rows: Rows) -> dict[str, Question]:
    found: dict[str, Question] = {}
    for line, row in rows:
        text = needed(line, row, column_of(columns, row, "query.text"), "query.text")
        key = column_of(columns, row, "query.id")
        name = needed(line, row, key, "query.id") if key else f"q{len(found) + 1}"
        question = found.setdefault(name, Question(line, text))
        if question.text != text:
            raise line.fault(f"query '{name}' has a different text in {question.line.short}")
        question.rows.append((line, row))
    return found
