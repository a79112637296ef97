"""Manual annotation of evidence: find quotes, split passages into sentences, and build the query record."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.core.blame import shown
from harness.core.errors import DataError, did_you_mean
from harness.core.records import Chunk, Document
from harness.core.sentences import sentence_spans
from harness.core.text_files import Line
from harness.data.checks.evidence import evidence_findings
from harness.data.manifest import Manifest, read_manifest
from harness.data.open_corpus import open_corpus
from harness.data.quotes import loose_occurrences, occurrences
from harness.data.raw_records import RawQuery
from harness.data.raw_records import query as parse_query
from harness.data.record_files import read_queries
from harness.data.write import add_record


def places(documents: Sequence[Document], quote: str) -> list[Chunk]:
    """All places of a quote: exact ones, or if there are none, those that differ only in white space."""
    exact = [Chunk.of(doc, at, at + len(quote)) for doc in documents for at in occurrences(doc.text, quote)]
    return exact or [Chunk.of(doc, *span) for doc in documents for span in loose_occurrences(doc.text, quote)]


def between(documents: Sequence[Document], text: str) -> list[Chunk]:
    """The spans from each place of a beginning to the next end after it; `text` is `beginning … end`."""
    first, last = (part.strip() for part in re.split(r"…|\.\.\.", text, maxsplit=1))
    made = []
    for head in places(documents, first):
        document = head.known_document()
        end = next((tail.end for tail in places([document], last) if tail.start >= head.end), None)
        if end is not None:
            made.append(Chunk.of(document, head.start, end))
    return made


def sentences(doc: Document, start: int, end: int) -> list[Chunk]:
    """The sentences between two character offsets, without the white space around them."""
    return [Chunk.of(doc, start + lo, start + hi) for lo, hi in sentence_spans(doc.text[start:end], "english")]


def query_line(
    manifest: Manifest,
    queries: str | None,
    text: str,
    marks: Sequence[Chunk],
    *,
    answer: str | None = None,
    name: str | None = None,
) -> dict[str, Any]:
    """The record of a query with its evidence, to be written to the query set `queries`.

    Without `name`, the query gets the next free id of its set. Raises DataError if the id is taken or the record is not
    valid.
    """
    pinned = manifest.queries.get(queries or "")
    known = {raw.id for raw in _queries(manifest, queries)}
    if pinned and name in known:
        raise DataError(f"{pinned.path}: query '{name}' already exists; choose another --id")
    number = len(known) + 1
    while name is None or name in known:
        name, number = f"{queries or 'q'}-{number:03d}", number + 1
    distinct = {(mark.doc, mark.start, mark.end): mark for mark in marks}.values()
    evidence = [{"doc": mark.doc, "start": mark.start, "end": mark.end, "quote": mark.text} for mark in distinct]
    line: dict[str, Any] = {"id": name, "text": text} | ({"answer": answer} if answer else {}) | {"evidence": evidence}
    parse_query(Line(manifest.root, 0), line)
    return line


def asked_before(manifest: Manifest, queries: str | None) -> set[str]:
    """The texts of the queries of a set."""
    return {raw.text for raw in _queries(manifest, queries)}


def _queries(manifest: Manifest, name: str | None) -> list[RawQuery]:
    """The queries of a set; none if there is no such set, or its file is empty."""
    pinned = manifest.queries.get(name or "")
    return read_queries(pinned) if pinned and pinned.path.read_bytes().strip() else []


def doubts(line: dict[str, Any], documents: Sequence[Document]) -> list[str]:
    """The messages of `harness data check` about the evidence of a query."""
    raw = parse_query(Line(Path("query"), 1), line)
    return [finding.what for finding in evidence_findings(raw, {doc.id: doc for doc in documents})]


def only_place(documents: Sequence[Document], quote: str, doc: str | None = None) -> Chunk:
    """The only place of a quote, or of `beginning … end`, in the document `doc` if given.

    Raises DataError if there is none, or several.
    """
    chosen = documents if doc is None else [one for one in documents if one.id == doc]
    if not chosen:
        ids = [one.id for one in documents]
        ends = [name for name in ids if name.endswith(f"/{doc}")]
        close = f" Did you mean '{ends[0]}'?" if len(ends) == 1 else did_you_mean(doc or "", ids)
        raise DataError(f"--doc {doc}: no such document.{close}")
    found = places(chosen, quote) or (between(chosen, quote) if re.search(r"…|\.\.\.", quote) else [])
    if not found:
        where = f"document '{doc}'" if doc else "any document"
        raise DataError(f"--quote {shown(quote)}: does not occur in {where}, even if white space is ignored")
    if len({mark.doc for mark in found}) > 1:
        names = ", ".join(dict.fromkeys(mark.doc for mark in found))
        alike = len({mark.text for mark in found}) == 1
        credit = "copies are credited alike" if alike else "they differ in white space, so only that one is credited"
        message = f"occurs in {len(found)} places, in {names[:200]}; choose with --doc ({credit})"
        raise DataError(f"--quote {shown(quote)}: {message}")
    if len(found) > 1:
        at = ", ".join(str(mark.start) for mark in found[:5])
        message = f"occurs {len(found)} times in '{found[0].doc}', at {at}"
        raise DataError(f"--quote {shown(quote)}: {message}; quote more of the surrounding text")
    return found[0]


def add_query(
    dataset: Path | str,
    text: str,
    quotes: Sequence[str],
    *,
    queries: str = "validation",
    answer: str | None = None,
    doc: str | None = None,
) -> str:
    """Add a query with its evidence to a query set of a data set folder, and return its id.

    Each quote is an item of evidence and must occur in exactly one place, or in one of the document `doc`; white space
    may differ. The set is created if it does not exist. Raises DataError if a quote does not, or the set cannot be
    written; nothing has changed then.
    """
    manifest = read_manifest(Path(dataset))
    with open_corpus(manifest) as documents:
        marks = [only_place(documents, quote, doc) for quote in quotes]
    line = query_line(manifest, queries, text, marks, answer=answer)
    add_record(manifest, queries, line)
    return str(line["id"])
