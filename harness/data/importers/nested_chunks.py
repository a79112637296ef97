"""Corpora whose documents list their chunks, with questions that name the chunks that answer them."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.core.errors import DataError
from harness.core.text_files import Line
from harness.data.importers.cells import column_of, needed, several, text_in
from harness.data.importers.dataset_writer import DatasetWriter, NewQuery, span
from harness.data.importers.fields import list_of, object_of
from harness.data.importers.options import Options
from harness.data.importers.source import Row, Source
from harness.data.quotes import loose_occurrences

_DOCUMENT = ("original_uuid", "uuid", "doc_id", "id", "_id")
_TEXT = ("content", "text", "body")
_CHUNK = ("chunk_id", "id", "uuid")
_NUMBER = ("original_index", "index", "chunk_index")

Place = tuple[str, int, int]
"""A span: document, start, end."""


def import_nested_chunks(source: Source, writer: DatasetWriter, options: Options) -> None:
    """Import documents with nested chunks, and questions whose gold chunks become spans of their documents.

    A document has an id, a text (or else that of its chunks) and `chunks`, each with an id or a number and its text. A
    question names chunks by id, or as `[document, number]`. Raises DataError with the line, for a chunk whose text is
    not in its document after the chunk before it, and for an unknown chunk.
    """
    corpus = source.file(options.corpus) if options.corpus else _with_chunks(source)
    places: dict[str, Place] = {}
    texts: dict[str, str] = {}
    for line, record in _records(source, corpus):
        name, text, chunks = _document(line, record)
        writer.document(line, name, text)
        for keys, start, end in chunks:
            for key in keys:
                places[key] = (name, start, end)
                texts[key] = text[start:end]
    queries = {key or options.name: source.file(file) for key, file in options.queries.items()}
    for key, path in (queries or {options.name: _questions(source, corpus)}).items():
        for number, (line, row) in enumerate(source.rows(path), 1):
            evidence = [span(*places[chunk], texts[chunk]) for chunk in _gold(line, row, places, options)]
            named = column_of(options.columns, row, "query.id")
            answer = text_in(line, row.get(column_of(options.columns, row, "query.answer") or ""), "query.answer")
            question = needed(line, row, column_of(options.columns, row, "query.text"), "query.text")
            name = needed(line, row, named, "query.id") if named else f"q{number}"
            writer.query(line, key, NewQuery(name, question, evidence, answer or None))
            writer.counts.add("gold chunks", len(evidence))


def _records(source: Source, path: Path) -> Iterator[tuple[Line, Row]]:
    """The documents of a JSON array or a JSONL file."""
    for line, record in source.rows(path):
        yield line, object_of(line, record, "document")


def _with_chunks(source: Source) -> Path:
    """The only file whose first document has chunks."""
    return source.one(
        "documents with `chunks`",
        "*.json",
        "*.jsonl",
        option="--corpus",
        only=lambda path: "chunks" in next((row for _, row in source.rows(path)), {}),
    )


def _questions(source: Source, corpus: Path) -> Path:
    if source.path == corpus:
        raise DataError(f"{corpus}: contains only the documents; name the questions with --queries")
    kinds = ("*.jsonl", "*.json", "*.csv")
    return source.one("the questions", *kinds, option="--queries", only=lambda path: path != corpus)


def _document(line: Line, record: Row) -> tuple[str, str, list[tuple[list[str], int, int]]]:
    """The id and the text of a document, and for each of its chunks the keys it is known by, and its place."""
    key = next((key for key in _DOCUMENT if key in record), None)
    if key is None:
        raise line.fault(f"no id; expected {' or '.join(_DOCUMENT)}, got {', '.join(record)[:80]}")
    name = text_in(line, record[key], key)
    names = [text_in(line, record[other], other) for other in _DOCUMENT if other in record]
    parts = [object_of(line, part, f"chunks[{at}]") for at, part in enumerate(list_of(line, record, "chunks"))]
    bodies = [_text(line, part, f"chunks[{at}]") for at, part in enumerate(parts)]
    text = _text(line, record, "document") if any(key in record for key in _TEXT) else "\n\n".join(bodies)
    chunks, begin = [], 0
    for at, (part, body) in enumerate(zip(parts, bodies, strict=True)):
        start, end = _place(line, text, body, begin, f"chunks[{at}]")
        begin = start
        number = next((part[key] for key in _NUMBER if key in part), at)
        keys = [text_in(line, part[key], key) for key in _CHUNK if key in part]
        chunks.append(([*keys, *(_pair(doc, number) for doc in names)], start, end))
    return name, text, chunks


def _text(line: Line, record: Row, where: str) -> str:
    key = next((key for key in _TEXT if key in record), None)
    if key is None or not isinstance(record[key], str):
        raise line.fault(f"{where}: no text; expected {' or '.join(_TEXT)}")
    return str(record[key])


def _place(line: Line, text: str, body: str, begin: int, where: str) -> tuple[int, int]:
    """The place of a chunk: chunks are in order, but may overlap."""
    start = text.find(body, begin)
    if start >= 0 and body:
        return start, start + len(body)
    found = next(((lo, hi) for lo, hi in loose_occurrences(text, body) if lo >= begin), None)
    if found is None:
        raise line.fault(f"{where}: its text does not occur in the document after the chunk before it: {body!r:.60}")
    return found


def _pair(document: str, number: Any) -> str:
    return json.dumps([document, number])


def _gold(line: Line, row: Row, places: dict[str, Place], options: Options) -> Sequence[str]:
    """The keys of the chunks that a question names. Raises DataError for an unknown one."""
    column = column_of(options.columns, row, "evidence.chunk")
    if column is None:
        listed = ", ".join(map(str, row))[:100]
        raise line.fault(f"no column of gold chunks; name it with --map evidence.chunk=COLUMN; columns: {listed}")
    keys = [one if isinstance(one, str) else json.dumps(one) for one in several(row.get(column))]
    for key in keys:
        if key not in places:
            raise line.fault(f"{column}: no chunk {key} in the corpus")
    return list(dict.fromkeys(keys))
