"""Tables of one's own: documents and queries as CSV, TSV, JSONL or JSON arrays, columns named by the person."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.dataset.lines import Line
from harness.dataset.quotes import loose_occurrences, occurrences
from harness.errors import DataError
from harness.importers.draft import Draft, span
from harness.importers.fields import whole_number
from harness.importers.options import Options
from harness.importers.source import Row, Rows, Source

_USUAL = {
    "doc.id": ("id", "_id", "doc_id", "docid", "doc"),
    "doc.text": ("text", "content", "contents", "body"),
    "doc.title": ("title",),
    "query.id": ("id", "_id", "query_id", "qid"),
    "query.text": ("text", "question", "query"),
    "query.answer": ("answer",),
    "query.type": ("type",),
    "query.group": ("group",),
    "evidence.doc": ("doc", "doc_id"),
    "evidence.start": ("start",),
    "evidence.end": ("end",),
    "evidence.quote": ("quote",),
    "evidence.grade": ("grade",),
}
"""The names looked for where a column is not given."""

_PLACES = 50
"""How many places of a quote that stands often in its document are kept."""


@dataclass
class Question:
    """A query with all rows about it: each may hold an item of evidence, or several."""

    line: Line
    text: str
    rows: list[tuple[Line, Row]] = field(default_factory=list)


def import_csv(source: Source, draft: Draft, options: Options) -> None:
    """Documents from `documents.csv`, queries from `queries.csv`, where no files are named; see `import_tables`."""
    _import(source, draft, options, "csv")


def import_jsonl(source: Source, draft: Draft, options: Options) -> None:
    """Documents from `documents.jsonl`, queries from `queries.jsonl`, where no files are named; see `import_tables`."""
    _import(source, draft, options, "jsonl")


def _import(source: Source, draft: Draft, options: Options, suffix: str) -> None:
    corpus = source.file(options.corpus) if options.corpus else _first(source, ("documents", "corpus"), suffix)
    named = {name or options.name: source.file(file) for name, file in options.queries.items()}
    queries = named or {options.name: _first(source, ("queries", "questions"), suffix)}
    tables = {name: source.rows(path) for name, path in queries.items()}
    import_tables(draft, options.columns, source.rows(corpus), tables)


def _first(source: Source, stems: tuple[str, ...], suffix: str) -> Path:
    for stem in stems:
        if found := source.all(f"{stem}.{suffix}"):
            return found[0]
    option = "--corpus" if "corpus" in stems else "--queries"
    raise DataError(f"{source.folder}: holds no {stems[0]}.{suffix}; name the file with {option}")


def import_tables(draft: Draft, columns: Mapping[str, str], documents: Rows, queries: Mapping[str, Rows]) -> None:
    """Add documents and query sets from records whose columns are named by `columns`, or as usual.

    Rows with the same query id are one query. Evidence is a document (or a list of them), a quote in it, or offsets
    with or without the quote; a quote alone is looked for in all documents. A quote that stands several times in its
    document has all of these places; one that does not stand there, even but for white space, is a DataError.
    """
    taken = {columns.get(name, "") for name in ("doc.id", "doc.text", "doc.title")}
    for line, row in documents:
        known = {name: _column(columns, row, name) for name in ("doc.id", "doc.text", "doc.title")}
        name, text = _needed(line, row, known["doc.id"], "doc.id"), _needed(line, row, known["doc.text"], "doc.text")
        title = row.get(known["doc.title"] or "")
        rest = {key: value for key, value in row.items() if key not in taken and key not in known.values()}
        draft.document(line, name, text, _text(line, title, "doc.title"), _metadata(rest))
    for queries_name, rows in queries.items():
        questions = _questions(columns, rows)
        anywhere = _Everywhere(draft, [quote for q in questions.values() for quote in _homeless(columns, q)])
        for name, question in questions.items():
            evidence = [
                item
                for line, row in question.rows
                for item in _items(draft, queries_name, anywhere, columns, line, row)
            ]
            distinct = [item for at, item in enumerate(evidence) if item not in evidence[:at]]
            first = question.rows[0][1]
            answer = _text(question.line, first.get(_column(columns, first, "query.answer") or ""), "query.answer")
            told = {key: first.get(_column(columns, first, f"query.{key}") or "") for key in ("type", "group")}
            metadata = {key: value for key, value in told.items() if value not in (None, "")}
            draft.query(
                question.line, queries_name, name, question.text, distinct, answer=answer or None, metadata=metadata
            )


def _metadata(rest: Row) -> dict[str, Any]:
    """What else a row tells of a document; a column `metadata` that is an object is taken for what it is."""
    inner = rest.pop("metadata", None)
    kept = {key: value for key, value in rest.items() if value not in (None, "")}
    return kept | (inner if isinstance(inner, dict) else {})


def _questions(columns: Mapping[str, str], rows: Rows) -> dict[str, Question]:
    found: dict[str, Question] = {}
    for line, row in rows:
        text = _needed(line, row, _column(columns, row, "query.text"), "query.text")
        key = _column(columns, row, "query.id")
        name = _needed(line, row, key, "query.id") if key else f"q{len(found) + 1}"
        question = found.setdefault(name, Question(line, text))
        if question.text != text:
            raise line.fault(f"query '{name}' has another text in {question.line.short}")
        question.rows.append((line, row))
    return found


def _items(
    draft: Draft, queries: str, anywhere: "_Everywhere", columns: Mapping[str, str], line: Line, row: Row
) -> Iterator[dict[str, Any]]:
    """The items of evidence in a row."""
    ready = row.get("evidence")
    if isinstance(ready, list) and not any(name.startswith("evidence.") for name in columns):
        yield from ready
        return
    names = ("doc", "start", "end", "quote", "grade")
    doc, start, end, quote, written = (row.get(_column(columns, row, f"evidence.{name}") or "") for name in names)
    docs, quotes = _several(doc), _several(quote)
    grade = 1 if written in (None, "") else whole_number(line, written, "evidence.grade")
    if start not in (None, ""):
        if len(docs) != 1 or len(quotes) > 1:
            raise line.fault("offsets go with one document and at most one quote")
        yield _given(line, _text(line, docs[0], "evidence.doc"), start, end, quotes, grade)
    elif quotes:
        for one in quotes:
            yield _quoted(draft, anywhere, line, docs, _text(line, one, "evidence.quote"), grade)
    else:
        judged = (draft.judged(queries, _text(line, one, "evidence.doc"), grade) for one in docs)
        yield from (item for item in judged if item)


def _given(line: Line, doc: str, start: Any, end: Any, quotes: list[Any], grade: int) -> dict[str, Any]:
    """Evidence by offsets, as they are written: `harness data check` tells where they and the quote disagree."""
    first = whole_number(line, start, "evidence.start")
    quote = {"quote": _text(line, quotes[0], "evidence.quote")} if quotes else {}
    if end in (None, "") and not quotes:
        raise line.fault("evidence.end: is missing, and there is no quote to measure")
    last = first + len(quote["quote"]) if end in (None, "") else whole_number(line, end, "evidence.end")
    return {"doc": doc, "start": first, "end": last, **quote, **_graded(grade)}


def _quoted(
    draft: Draft, anywhere: "_Everywhere", line: Line, docs: list[Any], quote: str, grade: int
) -> dict[str, Any]:
    """Evidence by a quote: all its places in the first of its documents that has it."""
    if not quote.strip():
        raise line.fault("evidence.quote: is nothing but white space")
    for name in docs or anywhere.documents(quote):
        document = draft.get(_text(line, name, "evidence.doc"))
        if document is None:
            raise line.fault(f"no document '{name}' in the corpus, which the quote {quote!r:.60} could stand in")
        found = [(start, start + len(quote)) for start in occurrences(document.text, quote)]
        if not found and (found := loose_occurrences(document.text, quote)):
            draft.counts.add("quotes found but for their white space")
        if found:
            first, *others = (span(document.id, start, end, document.text[start:end]) for start, end in found[:_PLACES])
            return {**first, **({"also": others} if others else {}), **_graded(grade)}
    where = f"document '{docs[0]}'" if docs else "any document"
    raise line.fault(f"evidence.quote: {quote!r:.60} does not stand in {where}")


def _graded(grade: int) -> dict[str, Any]:
    return {} if grade == 1 else {"grade": grade}


def _homeless(columns: Mapping[str, str], question: Question) -> Iterator[str]:
    """Quotes of a query whose document is not named."""
    for _, row in question.rows:
        if not _several(row.get(_column(columns, row, "evidence.doc") or "")):
            quotes = _several(row.get(_column(columns, row, "evidence.quote") or ""))
            yield from (quote for quote in quotes if isinstance(quote, str))


class _Everywhere:
    """The first documents in which quotes stand, found in one pass over the corpus."""

    def __init__(self, draft: Draft, quotes: list[str]) -> None:
        self._found: dict[str, list[str]] = {}
        wanted = {quote for quote in quotes if quote.strip()}
        for document in draft.documents() if wanted else ():
            for quote in sorted(wanted):
                if quote in document.text or loose_occurrences(document.text, quote):
                    self._found[quote] = [document.id]
                    wanted.remove(quote)

    def documents(self, quote: str) -> list[str]:
        return self._found.get(quote, [])


def _several(value: Any) -> list[Any]:
    """A cell as a list: a list, a JSON list written as text, or the one value there is."""
    if value in (None, ""):
        return []
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):
            return [value]
        return read if isinstance(read, list) else [value]
    return value if isinstance(value, list) else [value]


def _column(columns: Mapping[str, str], row: Row, name: str) -> str | None:
    """The column of a row that has this part: the one that is given, or the first of the usual ones."""
    if name in columns:
        return columns[name]
    return next((usual for usual in _USUAL[name] if usual in row), None)


def _needed(line: Line, row: Row, column: str | None, name: str) -> str:
    if column is None or column not in row:
        given = f"no column '{column}'" if column else f"no column for {name}"
        raise line.fault(
            f"{given}; there is {', '.join(map(str, row))[:100]}; say which it is with --map {name}=COLUMN"
        )
    value = row[column]
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise line.fault(f"{column}: expected text, got {value!r:.60}")
    return str(value)


def _text(line: Line, value: Any, name: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise line.fault(f"{name}: expected text, got {value!r:.60}")
    return str(value)
