"""Reading a data set: verifies everything a run relies on, and finds verbatim copies of evidence."""

import hashlib
import itertools
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from harness.core.errors import DataError
from harness.core.records import Document, Evidence, Query, Span
from harness.core.text_files import Line, json_lines
from harness.data.evidence_faults import evidence_faults, unknown_ignored
from harness.data.manifest import MANIFEST, Copies, Manifest, PinnedFile, read_manifest, sha256_of
from harness.data.quotes import inside_word, occurrences
from harness.data.raw_records import RawEvidence, RawQuery, document, query

Record = TypeVar("Record", Document, RawQuery)
SHORTEST_COPY = 20
"""Characters; copies of shorter quotes do not count: '20 minutes' in another document is not evidence."""


@dataclass(frozen=True)
class QuerySet:
    """The queries of one set, with their evidence resolved to places in the corpus."""

    name: str
    queries: Sequence[Query]

    @property
    def answerable(self) -> int:
        """The number of queries with evidence; retrieval metrics are defined only for these."""
        return sum(bool(query.evidence) for query in self.queries)


@dataclass(frozen=True)
class Dataset:
    """A corpus with one of its query sets."""

    name: str
    root: Path
    documents: Sequence[Document]
    query_set: QuerySet

    @cached_property
    def by_id(self) -> Mapping[str, Document]:
        """The documents by id."""
        return {doc.id: doc for doc in self.documents}

    @cached_property
    def number(self) -> Mapping[str, int]:
        """The position of each document in the corpus, counted from 0, by document id."""
        return {doc.id: at for at, doc in enumerate(self.documents)}


def load_dataset(
    root: Path,
    queries: str,
    *,
    copies: Copies | None = None,
    final: bool = False,
    hashes: tuple[str, str] | None = None,
    limit: int | None = None,
) -> Dataset:
    """Read and verify a data set folder with one of its query sets; `copies` overrides the setting of its manifest.

    `hashes` are those that corpus and queries had when they were first looked at, for files that are not pinned.
    `limit` takes a sample of so many queries.

    Raises DataError at the first fault: a file that differs from the pinned one, a malformed line, a duplicate id,
    evidence in an unknown document or out of range, a quote that differs from the text, or a locked set requested
    without `final`.
    """
    manifest = read_manifest(root)
    pinned = open_query_set(manifest, queries, final=final)
    if hashes:
        manifest = replace(manifest, corpus=replace(manifest.corpus, sha256=manifest.corpus.sha256 or hashes[0]))
        pinned = replace(pinned, sha256=pinned.sha256 or hashes[1])
    documents = read_corpus(manifest)
    by_id = {doc.id: doc for doc in documents}
    raw = read_queries(pinned)
    raw = raw if limit is None else sample(raw, limit)
    for item in raw:
        for fault in (*evidence_faults(item, by_id), *unknown_ignored(item, by_id)):
            raise DataError(f"{item.line}: {fault}; `harness data check {root}` lists every finding")
    resolved = _resolve(raw, documents, copies or manifest.copies)
    return Dataset(manifest.name, root, documents, QuerySet(queries, resolved))


def open_query_set(manifest: Manifest, queries: str, *, final: bool = False) -> PinnedFile:
    """The file of a query set. Raises DataError if the set is unknown, or locked and `final` is not set."""
    pinned = manifest.query_set(queries)
    if pinned.locked and not final:
        raise DataError(
            f"{manifest.root / MANIFEST}: query set '{queries}' is locked for the final score; use another set to "
            "choose between trials. `harness run --final` opens this one, and each access is recorded"
        )
    return pinned


def verify(pinned: PinnedFile) -> None:
    """Raise DataError if the file is missing, or differs from the one the manifest pins, if it pins one."""
    if not pinned.path.is_file():
        raise DataError(f"{pinned.path}: no such file, but the manifest names it")
    if not pinned.sha256:
        return
    root = next(folder for folder in pinned.path.parents if (folder / MANIFEST).is_file())
    actual = sha256_of(pinned.path)
    if actual != pinned.sha256:
        raise DataError(
            f"{pinned.path}: sha256 is {actual[:12]}…, but the manifest pins {pinned.sha256[:12]}…; restore the file, "
            f"or accept the change with `harness data pin {root}`"
        )


def hashed(manifest: Manifest) -> Manifest:
    """The manifest with the current hash of each file that it does not pin."""

    def known(file: PinnedFile) -> PinnedFile:
        return file if file.sha256 or not file.path.is_file() else replace(file, sha256=sha256_of(file.path))

    queries = {name: known(file) for name, file in manifest.queries.items()}
    runs = {name: known(file) for name, file in manifest.runs.items()}
    return replace(manifest, corpus=known(manifest.corpus), queries=queries, runs=runs)


def read_corpus(manifest: Manifest) -> list[Document]:
    """All documents. Raises DataError if the file is not the pinned one, is malformed, or repeats an id."""
    return _unique(manifest.corpus, document)


def read_queries(pinned: PinnedFile) -> list[RawQuery]:
    """All queries of a set as written; their evidence is not compared with the corpus. Raises DataError likewise."""
    return _unique(pinned, query)


def sample(queries: Sequence[RawQuery], count: int) -> list[RawQuery]:
    """So many queries, always the same and in their order: those whose ids have the lowest hashes.

    A larger sample contains a smaller one.
    """
    ranked = sorted(queries, key=lambda query: hashlib.sha256(query.id.encode("utf-8", "surrogatepass")).digest())
    chosen = {query.id for query in ranked[:count]}
    return [query for query in queries if query.id in chosen]


def _unique(pinned: PinnedFile, parse: Callable[[Line, dict[str, Any]], Record]) -> list[Record]:
    """The records of a pinned file. Raises DataError for a repeated id and for an empty file."""
    verify(pinned)
    lines: dict[str, int] = {}
    records = []
    for line, value in json_lines(pinned.path):
        record = parse(line, value)
        if record.id in lines:
            raise line.fault(f"id '{record.id}' already occurs in line {lines[record.id]}")
        lines[record.id] = line.number
        records.append(record)
    if not records:
        raise DataError(f"{pinned.path}: contains no {parse.__name__}")
    return records


def _resolve(raw: Sequence[RawQuery], documents: Sequence[Document], copies: Copies) -> list[Query]:
    by_id = {doc.id: doc for doc in documents}
    passage_search = CopyFinder(documents) if copies == "credit" else None
    return [
        Query(
            q.id,
            q.text,
            tuple(_evidence(item, q, by_id, passage_search) for item in q.evidence),
            q.answer,
            q.metadata,
            q.ignore,
            q.irrelevant,
            q.unjudged,
        )
        for q in raw
    ]


def _evidence(
    item: RawEvidence, query: RawQuery, by_id: Mapping[str, Document], passage_search: "CopyFinder | None"
) -> Evidence:
    if item.places[0].span is None:
        names = [p.doc for p in item.places if not p.absent]
        # A copy that the query itself lists as evidence, ignored or irrelevant keeps that role.
        named = {p.doc for other in query.evidence for p in other.places} | {*query.ignore, *query.irrelevant}
        equal = [copy for name in names for copy in (passage_search.documents(by_id[name]) if passage_search else ())]
        names += [copy for copy in dict.fromkeys(equal) if copy not in named]
        there = tuple(Span(name, 0, len(by_id[name].text)) for name in names)
        nowhere = tuple(Span(p.doc, 0, 0) for p in item.places)
        return Evidence(there or nowhere, item.grade, whole=True, absent=not there)
    places = [place.span for place in item.places if place.span]
    if passage_search:
        for place in list(places):
            places += [
                copy
                for copy in passage_search.copies(by_id[place.doc].text[place.start : place.end])
                if copy not in places
            ]
    return Evidence(tuple(places), item.grade)


class CopyFinder:
    """Finds the places in the corpus where a quote occurs verbatim as whole words, and documents of equal text."""

    _BETWEEN = "\x00\x00"

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._known: dict[str, list[Span]] = {}

    @cached_property
    def _joined(self) -> str:
        return self._BETWEEN.join(doc.text for doc in self._documents)

    @cached_property
    def _begins(self) -> list[int]:
        lengths = (len(doc.text) + len(self._BETWEEN) for doc in self._documents)
        return [0, *itertools.accumulate(lengths)][:-1]

    @cached_property
    def _by_text(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for doc in self._documents:
            found.setdefault(doc.text.strip(), []).append(doc.id)
        return found

    def documents(self, doc: Document) -> list[str]:
        """The ids of all documents with the same text, including `doc`, ignoring white space around the text.

        Empty for a text shorter than `SHORTEST_COPY`.
        """
        text = doc.text.strip()
        return self._by_text[text] if len(text) >= SHORTEST_COPY else []

    def copies(self, quote: str) -> list[Span]:
        """All places of a quote as whole words, including the original; empty if shorter than `SHORTEST_COPY`."""
        if len(quote) < SHORTEST_COPY:
            return []
        if quote not in self._known:
            self._known[quote] = [
                span for start in occurrences(self._joined, quote) if (span := self._span(start, quote))
            ]
        return self._known[quote]

    def _span(self, at: int, quote: str) -> Span | None:
        number = bisect_right(self._begins, at) - 1
        doc, start = self._documents[number], at - self._begins[number]
        end = start + len(quote)
        if end > len(doc.text) or inside_word(doc.text, start) or inside_word(doc.text, end):
            return None
        return Span(doc.id, start, end)
