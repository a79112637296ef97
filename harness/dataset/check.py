"""What is wrong with a data set, every finding with its file and line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from harness.dataset.load import evidence_faults, occurrences, verify
from harness.dataset.manifest import PinnedFile, read_manifest
from harness.dataset.records import RawPlace, RawQuery, document, json_lines, query
from harness.errors import DataError
from harness.model import Document

Level = Literal["error", "warning"]


class Finding(NamedTuple):
    """One thing wrong: an `error` keeps the data set from being used, a `warning` makes its numbers doubtful."""

    level: Level
    code: str
    where: str
    what: str


def check_dataset(root: Path) -> Iterator[Finding]:
    """All findings of a data set folder: files, ids, and the evidence of every query set, locked ones included."""
    manifest = read_manifest(root)
    documents: dict[str, Document] = {}
    yield from _pins(manifest.corpus)
    yield from _documents(manifest.corpus, documents)
    for pinned in manifest.queries.values():
        yield from _pins(pinned)
        yield from _queries(pinned, documents)


def _pins(pinned: PinnedFile) -> Iterator[Finding]:
    try:
        verify(pinned)
    except DataError as error:
        yield _refused("not-pinned", error)


def _refused(code: str, error: DataError, more: str = "") -> Finding:
    """What keeps a file from being read, as a finding: the message begins with the place."""
    where, _, what = str(error).partition(": ")
    return Finding("error", code, where, what + more)


def _documents(pinned: PinnedFile, documents: dict[str, Document]) -> Iterator[Finding]:
    lines: dict[str, int] = {}
    try:
        for line, value in json_lines(pinned.path):
            doc = document(line, value)
            if doc.id in documents:
                yield Finding(
                    "error", "duplicate-id", str(line), f"document '{doc.id}' already stands in line {lines[doc.id]}"
                )
                continue
            documents[doc.id] = doc
            lines[doc.id] = line.number
            if not doc.text.strip():
                yield Finding("warning", "empty-document", str(line), f"document '{doc.id}' holds no text")
            elif "\x00" in doc.text:
                yield Finding("warning", "nul", str(line), f"document '{doc.id}' holds a NUL character")
        if not documents:
            yield Finding("error", "empty-file", str(pinned.path), "holds no document")
    except DataError as error:
        yield _refused("malformed", error, " (reading stopped here)")


def _queries(pinned: PinnedFile, documents: dict[str, Document]) -> Iterator[Finding]:
    lines: dict[str, int] = {}
    texts: dict[str, str] = {}
    try:
        for line, value in json_lines(pinned.path):
            item = query(line, value)
            if item.id in lines:
                yield Finding(
                    "error", "duplicate-id", str(line), f"query '{item.id}' already stands in line {lines[item.id]}"
                )
            lines.setdefault(item.id, line.number)
            yield from _query(item, documents)
            same = texts.setdefault(" ".join(item.text.lower().split()), item.id)
            if same != item.id:
                yield Finding("warning", "duplicate-query", str(line), f"query '{item.id}' asks the same as '{same}'")
        if not lines:
            yield Finding("error", "empty-file", str(pinned.path), "holds no query")
    except DataError as error:
        yield _refused("malformed", error, " (reading stopped here)")


def _query(item: RawQuery, documents: dict[str, Document]) -> Iterator[Finding]:
    where = str(item.line)
    if not item.text.strip():
        yield Finding("warning", "empty-query", where, f"query '{item.id}' has no text")
    if not item.evidence:
        yield Finding("warning", "no-evidence", where, f"query '{item.id}' has no evidence: it counts as unanswerable")
    for fault in evidence_faults(item, documents):
        yield Finding("error", "bad-evidence", where, f"query '{item.id}': {fault}")
    for evidence in item.evidence:
        for place in evidence.places:
            if place.doc in documents:
                yield from _place(item, place, documents[place.doc])


def _place(item: RawQuery, place: RawPlace, doc: Document) -> Iterator[Finding]:
    if place.start is None or place.end is None or not 0 <= place.start < place.end <= len(doc.text):
        return
    where, text = str(item.line), doc.text
    quote = text[place.start : place.end]
    spot = f"query '{item.id}': '{doc.id}' {place.start}-{place.end}"
    if quote != quote.strip():
        yield Finding("warning", "white-space-edge", where, f"{spot} begins or ends with white space")
    begins_inside = place.start > 0 and text[place.start - 1].isalnum() and quote[0].isalnum()
    ends_inside = place.end < len(text) and quote[-1].isalnum() and text[place.end].isalnum()
    if begins_inside or ends_inside:
        yield Finding("warning", "inside-word", where, f"{spot} {'begins' if begins_inside else 'ends'} inside a word")
    count = len(occurrences(text, quote))
    if count > 1:
        yield Finding("warning", "ambiguous", where, f"{spot} stands {count} times in the document")
