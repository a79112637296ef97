"""Tables of one's own: documents and queries as CSV, TSV, JSONL or JSON arrays, columns named by the person."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.dataset.lines import Line
from harness.dataset.quotes import inside_word, loose_occurrences, occurrences
from harness.errors import DataError, did_you_mean
from harness.importers.draft import Draft, span
from harness.importers.fields import whole_number
from harness.importers.options import Options
from harness.importers.source import Row, Rows, Source
from harness.model import Document

_USUAL = {
    "doc.id": ("id", "_id", "doc_id", "docid", "doc"),
    "doc.text": ("text", "content", "contents", "body"),
    "doc.title": ("title",),
    "query.id": ("id", "_id", "query_id", "qid"),
    "query.text": ("text", "question", "query"),
    "query.answer": ("answer",),
    "query.type": ("type",),
    "query.group": ("group",),
    "evidence.doc": ("doc", "doc_id", "document"),
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
    import_tables(draft, options.columns, source.rows(corpus), tables, absent=options.absent)


def _first(source: Source, stems: tuple[str, ...], suffix: str) -> Path:
    for stem in stems:
        if found := source.all(f"{stem}.{suffix}"):
            return found[0]
    option = "--corpus" if "corpus" in stems else "--queries"
    raise DataError(f"{source.folder}: holds no {stems[0]}.{suffix}; name the file with {option}")


def import_tables(
    draft: Draft, columns: Mapping[str, str], documents: Rows, queries: Mapping[str, Rows], *, absent: bool = False
) -> None:
    """Add documents and query sets from records whose columns are named by `columns`, or as usual.

    Rows with the same query id are one query. Evidence is a document (or a list of them), a quote in it, or offsets
    with or without the quote; a quote alone is looked for in all documents. A quote that stands several times in its
    document has all of these places; one that does not stand there, even but for white space, is a DataError, and so is
    an unknown document, unless `absent` says that such evidence is to be kept as always missed. Further columns become
    metadata.
    """
    _add_documents(draft, columns, documents)
    for name, rows in queries.items():
        table = _Table(draft, name, columns, absent=absent)
        table.add(_questions(columns, _noted(columns, ("query.", "evidence."), rows)))


def _add_documents(draft: Draft, columns: Mapping[str, str], documents: Rows) -> None:
    for line, row in _noted(columns, ("doc.",), documents):
        known = {name: _column(columns, row, name) for name in ("doc.id", "doc.text", "doc.title")}
        name, text = _needed(line, row, known["doc.id"], "doc.id"), _needed(line, row, known["doc.text"], "doc.text")
        title = _text(line, _cell(row, known["doc.title"]), "doc.title")
        rest = {key: value for key, value in row.items() if key and key not in known.values()}
        draft.document(line, name, text, title, _metadata(line, rest))


def _noted(columns: Mapping[str, str], parts: tuple[str, ...], rows: Rows) -> Iterator[tuple[Line, Row]]:
    """The rows. Raises DataError at their end where a column that was named stands in none of them."""
    left = {name: column for name, column in columns.items() if name.startswith(parts)}
    seen: dict[str, None] = {}
    line: Line | None = None
    for line, row in rows:
        seen.update(dict.fromkeys(map(str, row)))
        left = {name: column for name, column in left.items() if column not in row}
        yield line, row
    for name, column in left.items() if line else ():
        known = f"{did_you_mean(column, seen)} There is {', '.join(seen)[:120]}"
        raise DataError(f"{line.path if line else ''}: --map {name}={column}: no row has a column '{column}'.{known}")


def _metadata(line: Line, rest: Row) -> dict[str, Any]:
    """What else a row tells; a column `metadata` that is an object is taken for what it is."""
    inner = rest.pop("metadata", None)
    if inner not in (None, "") and not isinstance(inner, dict):
        raise line.fault(f"metadata: expected an object, got {inner!r:.60}")
    kept = {key: value for key, value in rest.items() if value not in (None, "")}
    return kept | (inner or {})


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


class _Table:
    """The queries of one table on their way into a draft."""

    def __init__(self, draft: Draft, queries: str, columns: Mapping[str, str], *, absent: bool) -> None:
        self._draft, self._queries, self._columns, self._absent = draft, queries, columns, absent
        self._found: dict[str, str] = {}
        self._judged: dict[str, float] = {}

    def add(self, questions: Mapping[str, Question]) -> None:
        homeless = [quote for one in questions.values() for _, row in one.rows for quote in self._homeless(row)]
        self._found = _homes(self._draft, homeless)
        for name, question in questions.items():
            self._judged = {}
            evidence = [item for line, row in question.rows for item in self._items(line, row)]
            distinct = [item for at, item in enumerate(evidence) if item not in evidence[:at]]
            ignored = [_text(line, doc, "ignore") for line, row in question.rows for doc in _several(row.get("ignore"))]
            self._draft.query(
                question.line,
                self._queries,
                name,
                question.text,
                distinct,
                answer=self._one(question, "answer"),
                metadata=self._told(question),
                ignore=ignored,
            )
            if not distinct:
                self._draft.counts.add(f"{self._queries} queries without evidence")

    def _value(self, row: Row, part: str) -> Any:
        return _cell(row, _column(self._columns, row, part))

    def _one(self, question: Question, part: str) -> str | None:
        """What the rows say of a query; they may leave it out, and must not contradict each other."""
        found: str | None = None
        for line, row in question.rows:
            told = _text(line, self._value(row, f"query.{part}"), f"query.{part}")
            if told and found and told != found:
                raise line.fault(f"query.{part}: {told!r:.40} here, and {found!r:.40} in a row before")
            found = found or told or None
        return found

    def _told(self, question: Question) -> dict[str, Any]:
        """The metadata: type, group, and further columns; where rows differ in one, a list of what they say."""
        made = {part: told for part in ("type", "group") if (told := self._one(question, part))}
        values: dict[str, list[Any]] = {}
        for line, row in question.rows:
            used = {_column(self._columns, row, part) for part in _USUAL if not part.startswith("doc.")}
            rest = {key: value for key, value in row.items() if key and key not in used and key not in _OWN}
            for key, value in _metadata(line, rest).items():
                known = values.setdefault(key, [])
                if value not in known:
                    known.append(value)
        return made | {key: known[0] if len(known) == 1 else known for key, known in values.items()}

    def _homeless(self, row: Row) -> list[str]:
        """Quotes whose document is not named."""
        if _several(self._value(row, "evidence.doc")) or isinstance(row.get("evidence"), list):
            return []
        return [quote for quote in _quotes(self._value(row, "evidence.quote")) if isinstance(quote, str)]

    def _items(self, line: Line, row: Row) -> Iterator[dict[str, Any]]:
        """The items of evidence in a row."""
        ready = row.get("evidence")
        if ready not in (None, "") and "evidence" not in self._columns.values():
            yield from _ready(line, row, ready)
            return
        parts = ("doc", "start", "end", "quote", "grade")
        doc, start, end, quote, written = (self._value(row, f"evidence.{part}") for part in parts)
        docs, quotes = [_text(line, one, "evidence.doc") for one in _several(doc)], _quotes(quote)
        grade = 1.0 if written in (None, "") else _grade(line, written)
        if grade <= 0:
            self._irrelevant(line, docs)
            return
        if start in (None, "") and end not in (None, ""):
            raise line.fault("evidence.start: is missing, and there is an end")
        if start not in (None, ""):
            if not docs:
                raise line.fault(f"offsets, and no column for evidence.doc; there is {', '.join(map(str, row))[:100]}")
            if len(docs) > 1 or len(quotes) > 1:
                raise line.fault("offsets go with one document and at most one quote")
            if docs[0] not in self._draft:
                raise line.fault(f"no document '{docs[0]}' in the corpus, which the offsets are about")
            found = [_given(line, docs[0], start, end, quotes, grade)]
        elif quotes:
            found = [self._quoted(line, docs, _text(line, one, "evidence.quote"), grade) for one in quotes]
        else:
            found = [self._whole(line, one, grade) for one in docs]
        yield from found

    def _irrelevant(self, line: Line, docs: list[str]) -> None:
        """Judged to be no evidence: counted."""
        for doc in docs:
            self._judge(line, doc, 0.0)
        told = f"{self._queries} judgments of grade 0 or below, which are no evidence"
        self._draft.counts.add(told, max(1, len(docs)))

    def _judge(self, line: Line, doc: str, grade: float) -> None:
        """Raises DataError where the document was judged otherwise for the same query."""
        if self._judged.setdefault(doc, grade) != grade:
            raise line.fault(f"document '{doc}' is judged a second time, {grade:g} instead of {self._judged[doc]:g}")

    def _whole(self, line: Line, doc: str, grade: float) -> dict[str, Any]:
        self._judge(line, doc, grade)
        if doc not in self._draft and not self._absent:
            told = f"no document '{doc}' in the corpus; --absent keeps such evidence, as always missed"
            raise line.fault(f"{told}; several documents are written as a JSON list")
        self._draft.counts.add(f"{self._queries} judgments")
        if doc in self._draft:
            return {"doc": doc, **_graded(grade)}
        self._draft.counts.add(f"{self._queries} judgments of documents that the corpus lacks, kept")
        return {"doc": doc, "absent": True, **_graded(grade)}

    def _quoted(self, line: Line, docs: list[str], quote: str, grade: float) -> dict[str, Any]:
        """Evidence by a quote: all its places in the first of its documents that has it."""
        if not quote.strip():
            raise line.fault("evidence.quote: is nothing but white space")
        homes = docs or [self._found[quote]] if docs or quote in self._found else []
        for name in homes:
            document = self._draft.get(name)
            if document is None:
                raise line.fault(f"no document '{name}' in the corpus, which the quote {quote!r:.60} could stand in")
            if found := standing(document.text, quote)[1]:
                return self._placed(document, quote, found, grade)
        where = f"document '{docs[0]}'" if docs else "any document"
        raise line.fault(f"evidence.quote: {quote!r:.60} does not stand in {where}")

    def _placed(self, document: Document, quote: str, found: Sequence[tuple[int, int]], grade: float) -> dict[str, Any]:
        if document.text[slice(*found[0])] != quote:
            self._draft.counts.add("quotes found but for their white space")
        if len(found) > 1:
            self._draft.counts.add("quotes that stand several times in their document, all places kept")
        first, *others = (span(document.id, start, end, document.text[start:end]) for start, end in found[:_PLACES])
        return {**first, **({"also": others} if others else {}), **_graded(grade)}


_OWN = ("evidence", "ignore", "grade")
"""Columns of a query that the harness itself writes."""


def _ready(line: Line, row: Row, ready: Any) -> Iterator[dict[str, Any]]:
    """Evidence as the harness writes it itself."""
    if not isinstance(ready, list) or not all(isinstance(item, dict) for item in ready):
        told = "expected a list of items; for a column of document ids say --map evidence.doc=evidence"
        raise line.fault(f"evidence: {told}, got {ready!r:.60}")
    grade = {} if row.get("grade") is None else {"grade": row["grade"]}
    yield from ({**grade, **item} for item in ready)


def standing(text: str, quote: str) -> tuple[int, list[tuple[int, int]]]:
    """Where a quote stands, and how well: 3 as whole words, 2 inside words, 1 but for white space, 0 nowhere.

    >>> standing("A cat in a category.", "cat")
    (3, [(2, 5)])
    """
    exact = [(start, start + len(quote)) for start in occurrences(text, quote)]
    whole = [(start, end) for start, end in exact if not inside_word(text, start) and not inside_word(text, end)]
    if whole or exact:
        return (3, whole) if whole else (2, exact)
    loose = loose_occurrences(text, quote)
    return int(bool(loose)), loose


def _homes(draft: Draft, quotes: Sequence[str]) -> dict[str, str]:
    """For each quote the document in which it stands best, the first of these, found in one pass over the corpus."""
    best: dict[str, tuple[int, str]] = {}
    wanted = sorted({quote for quote in quotes if quote.strip()})
    for document in draft.documents() if wanted else ():
        for quote in wanted:
            how, _ = standing(document.text, quote)
            if how > best.get(quote, (0, ""))[0]:
                best[quote] = (how, document.id)
            elif how and how == best[quote][0]:
                draft.counts.add("further documents that hold a quote without a document, of which the first was taken")
    return {quote: doc for quote, (_, doc) in best.items()}


def _given(line: Line, doc: str, start: Any, end: Any, quotes: list[Any], grade: float) -> dict[str, Any]:
    """Evidence by offsets, as they are written: `harness data check` tells where they and the quote disagree."""
    first = whole_number(line, start, "evidence.start")
    quote = {"quote": _text(line, quotes[0], "evidence.quote")} if quotes else {}
    if end in (None, "") and not quotes:
        raise line.fault("evidence.end: is missing, and there is no quote to measure")
    last = first + len(quote["quote"]) if end in (None, "") else whole_number(line, end, "evidence.end")
    return {"doc": doc, "start": first, "end": last, **quote, **_graded(grade)}


def _graded(grade: float) -> dict[str, Any]:
    return {} if grade == 1 else {"grade": int(grade) if grade == int(grade) else grade}


def _grade(line: Line, value: Any) -> float:
    try:
        grade = float(value)
    except (TypeError, ValueError):
        grade = math.nan
    if isinstance(value, bool) or not abs(grade) <= 1e6:
        raise line.fault(f"evidence.grade: expected a number of at most 1000000, got {value!r:.40}")
    return grade


def _quotes(value: Any) -> list[Any]:
    """A cell as a list of quotes: only a JSON list of texts is a list, as a text may begin with a bracket."""
    found = _several(value)
    return found if isinstance(value, list) or all(isinstance(one, str) for one in found) else [value]


def _cell(row: Row, column: str | None) -> Any:
    """The value in a column; none where there is no such column."""
    return None if column is None else row.get(column)


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
