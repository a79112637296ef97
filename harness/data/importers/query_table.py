"""Importing the queries of a table: evidence as documents, quotes or offsets, one item per row."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.core.records import Document
from harness.core.text_files import Line
from harness.data.importers.cells import USUAL, cell, column_of, grade_in, metadata_of, quotes_in, several, text_in
from harness.data.importers.dataset_writer import DatasetWriter, NewQuery, span
from harness.data.importers.fields import whole_number
from harness.data.importers.source import Row
from harness.data.quotes import standing

_PLACES = 50
"""Maximum number of places kept of a quote that occurs several times in its document."""

_LIKELY = re.compile(
    r"(?:gold|relevant|support|evidence|ground_?truth|reference|citation|cited|context|passage|snippet|chunk|source)"
    r"[\w.]*?(?P<id>ids?|docs?|documents?|files?)?$",
    re.IGNORECASE,
)
"""Names of columns that are likely to hold evidence; those with `id` are likely to hold ids of documents."""

_OWN = ("evidence", "ignore", "irrelevant", "unjudged", "grade")
"""Columns of the harness's own query format."""


@dataclass
class Question:
    """A query with all its rows; each may contain one or several items of evidence."""

    line: Line
    text: str
    rows: list[tuple[Line, Row]] = field(default_factory=list)


class QueryTable:
    """Adds the queries of one table to a `DatasetWriter`."""

    def __init__(self, writer: DatasetWriter, queries: str, columns: Mapping[str, str], *, absent: bool) -> None:
        self._writer, self._queries, self._columns, self._absent = writer, queries, columns, absent
        self._found: dict[str, str] = {}
        self._judged: dict[str, float] = {}

    def add(self, questions: Mapping[str, Question]) -> None:
        """Add the queries, given by id. Raises DataError naming the faulty line."""
        quotes = [quote for one in questions.values() for _, row in one.rows for quote in self._without_document(row)]
        self._found = _documents_of(self._writer, quotes)
        for name, question in questions.items():
            self._judged = {}
            evidence = [item for line, row in question.rows for item in self._items(line, row)]
            distinct = [item for at, item in enumerate(evidence) if item not in evidence[:at]]
            named = {
                key: [text_in(line, doc, key) for line, row in question.rows for doc in several(row.get(key))]
                for key in ("ignore", "irrelevant", "unjudged")
            }
            named["irrelevant"] += [doc for doc, grade in self._judged.items() if not grade]
            answer, metadata = self._one(question, "answer"), self._metadata(question)
            query = NewQuery(name, question.text, distinct, answer, metadata, **named)
            self._writer.query(question.line, self._queries, query)
            if not distinct:
                self._writer.counts.add(f"{self._queries} queries without evidence")

    def _value(self, row: Row, part: str) -> Any:
        return cell(row, column_of(self._columns, row, part))

    def _one(self, question: Question, part: str) -> str | None:
        """The value of a part, which rows may leave empty. Raises DataError if rows contradict each other."""
        found: str | None = None
        for line, row in question.rows:
            text = text_in(line, self._value(row, f"query.{part}"), f"query.{part}")
            if text and found and text != found:
                raise line.fault(f"query.{part}: {text!r:.40} here, but {found!r:.40} in an earlier row")
            found = found or text or None
        return found

    def _metadata(self, question: Question) -> dict[str, Any]:
        """The metadata: type, group, and other columns; a list of the values if rows differ in a column."""
        made = {part: value for part in ("type", "group") if (value := self._one(question, part))}
        values: dict[str, list[Any]] = {}
        for line, row in question.rows:
            used = {column_of(self._columns, row, part) for part in USUAL if not part.startswith("doc.")}
            rest = {key: value for key, value in row.items() if key and key not in used and key not in _OWN}
            self._note_likely_evidence(rest)
            for key, value in metadata_of(line, rest).items():
                known = values.setdefault(key, [])
                if value not in known:
                    known.append(value)
        return made | {key: known[0] if len(known) == 1 else known for key, known in values.items()}

    def _note_likely_evidence(self, rest: Row) -> None:
        """Count the values of columns that look like evidence but are not used as such."""
        for key, value in rest.items():
            found = several(value)
            if found and (match := _LIKELY.search(str(key)[-80:])):
                is_document = str(found[0]) in self._writer or match["id"]
                part = "evidence.doc" if is_document else "evidence.quote"
                message = f"values of '{key}', which looks like evidence but became metadata"
                self._writer.counts.add(f"{message}; --map {part}={key} uses it")

    def _without_document(self, row: Row) -> list[str]:
        """The quotes of a row that does not name a document."""
        if several(self._value(row, "evidence.doc")) or isinstance(row.get("evidence"), list):
            return []
        return [quote for quote in quotes_in(self._value(row, "evidence.quote")) if isinstance(quote, str)]

    def _items(self, line: Line, row: Row) -> Iterator[dict[str, Any]]:
        """The items of evidence in a row."""
        ready = row.get("evidence")
        if ready not in (None, "") and "evidence" not in self._columns.values():
            if self._writer.titles == "text" and any(
                isinstance(one, dict) and "start" in one for one in several(ready)
            ):
                raise line.fault("offsets refer to the text without the title; leave out --titles text")
            for item in _ready(line, row, ready):
                yield self._completed(line, item)
            return
        parts = ("doc", "start", "end", "quote", "grade")
        doc, start, end, quote, written = (self._value(row, f"evidence.{part}") for part in parts)
        docs, quotes = [text_in(line, one, "evidence.doc") for one in several(doc)], quotes_in(quote)
        grade = 1.0 if written in (None, "") else grade_in(line, written)
        if grade <= 0:
            self._irrelevant(line, docs)
            return
        if start in (None, "") and end not in (None, ""):
            raise line.fault("evidence.start: is missing, but there is an end")
        if start not in (None, ""):
            if not docs:
                raise line.fault(f"offsets, but no column for evidence.doc; columns: {', '.join(map(str, row))[:100]}")
            if len(docs) > 1 or len(quotes) > 1:
                raise line.fault("offsets need exactly one document and at most one quote")
            if self._writer.titles == "text":
                raise line.fault("offsets refer to the text without the title; leave out --titles text")
            if docs[0] not in self._writer:
                raise line.fault(f"no document '{docs[0]}' in the corpus, to which the offsets refer")
            found = [_given(line, docs[0], start, end, quotes, grade)]
        elif quotes:
            found = [self._quoted(line, docs, text_in(line, one, "evidence.quote"), grade) for one in quotes]
        else:
            found = [self._whole(line, one, grade) for one in docs]
        yield from found

    def _completed(self, line: Line, item: dict[str, Any]) -> dict[str, Any]:
        """An item of the harness's own format; the offsets of a quote without them are searched for."""
        if not item.get("quote") or "start" in item or "end" in item:
            return item
        quote, docs = (
            text_in(line, item["quote"], "quote"),
            [text_in(line, item["doc"], "doc")] if "doc" in item else [],
        )
        if not docs and quote not in self._found:
            self._found |= _documents_of(self._writer, [quote])
        return self._quoted(line, docs, quote, grade_in(line, item.get("grade", 1)))

    def _irrelevant(self, line: Line, docs: list[str]) -> None:
        """Record documents judged not relevant."""
        for doc in docs:
            self._judge(line, doc, 0.0)
        message = f"{self._queries} judgments of grade 0 or below, which are no evidence"
        self._writer.counts.add(message, max(1, len(docs)))

    def _judge(self, line: Line, doc: str, grade: float) -> None:
        """Record a judgment. Raises DataError if it contradicts an earlier one of the same query."""
        if self._judged.setdefault(doc, grade) != grade:
            raise line.fault(f"document '{doc}' is judged twice, {grade:g} here and {self._judged[doc]:g} before")

    def _whole(self, line: Line, doc: str, grade: float) -> dict[str, Any]:
        self._judge(line, doc, grade)
        if doc not in self._writer and not self._absent:
            message = f"no document '{doc}' in the corpus; --absent keeps such evidence and counts it as missed"
            raise line.fault(f"{message}; write several documents as a JSON list")
        self._writer.counts.add(f"{self._queries} judgments")
        if doc in self._writer:
            return {"doc": doc, **_graded(grade)}
        self._writer.counts.add(f"{self._queries} judgments of documents that the corpus lacks, kept")
        return {"doc": doc, "absent": True, **_graded(grade)}

    def _quoted(self, line: Line, docs: list[str], quote: str, grade: float) -> dict[str, Any]:
        """Evidence by a quote: all its places in the first of its documents that contains it."""
        if not quote.strip():
            raise line.fault("evidence.quote: contains only white space")
        names = docs or [self._found[quote]] if docs or quote in self._found else []
        for name in names:
            document = self._writer.get(name)
            if document is None:
                raise line.fault(f"no document '{name}' in the corpus for the quote {quote!r:.60}")
            if found := standing(document.text, quote)[1]:
                return self._placed(document, quote, found, grade)
        where = f"document '{docs[0]}'" if docs else "any document"
        raise line.fault(f"evidence.quote: {quote!r:.60} does not occur in {where}")

    def _placed(self, document: Document, quote: str, found: Sequence[tuple[int, int]], grade: float) -> dict[str, Any]:
        if document.text[slice(*found[0])] != quote:
            self._writer.counts.add("quotes found but for their white space")
        if len(found) > 1:
            self._writer.counts.add("quotes that occur several times in their document, all places kept")
        first, *others = (span(document.id, start, end, document.text[start:end]) for start, end in found[:_PLACES])
        return {**first, **({"also": others} if others else {}), **_graded(grade)}


def _ready(line: Line, row: Row, ready: Any) -> Iterator[dict[str, Any]]:
    """Evidence in the harness's own format."""
    if not isinstance(ready, list) or not all(isinstance(item, dict) for item in ready):
        message = "expected a list of items; for a column of document ids use --map evidence.doc=evidence"
        raise line.fault(f"evidence: {message}, got {ready!r:.60}")
    grade = {} if row.get("grade") is None else {"grade": row["grade"]}
    yield from ({**grade, **item} for item in ready)


def _documents_of(writer: DatasetWriter, quotes: Sequence[str]) -> dict[str, str]:
    """The first document in which each quote matches best, found in one pass over the corpus."""
    best: dict[str, tuple[int, str]] = {}
    wanted = sorted({quote for quote in quotes if quote.strip()})
    for document in writer.documents() if wanted else ():
        for quote in wanted:
            how, _ = standing(document.text, quote)
            if how > best.get(quote, (0, ""))[0]:
                best[quote] = (how, document.id)
            elif how and how == best[quote][0]:
                writer.counts.add(
                    "further documents that hold a quote without a document, of which the first was taken"
                )
    return {quote: doc for quote, (_, doc) in best.items()}


def _given(line: Line, doc: str, start: Any, end: Any, quotes: list[Any], grade: float) -> dict[str, Any]:
    """Evidence by offsets as written; `harness data check` reports offsets that do not match the quote."""
    first = whole_number(line, start, "evidence.start")
    quote = {"quote": text_in(line, quotes[0], "evidence.quote")} if quotes else {}
    if end in (None, "") and not quotes:
        raise line.fault("evidence.end: is missing, and without a quote it cannot be computed")
    last = first + len(quote["quote"]) if end in (None, "") else whole_number(line, end, "evidence.end")
    return {"doc": doc, "start": first, "end": last, **quote, **_graded(grade)}


def _graded(grade: float) -> dict[str, Any]:
    return {} if grade == 1 else {"grade": int(grade) if grade == int(grade) else grade}
