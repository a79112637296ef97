"""Reading a data set: verifies everything a run relies on, and resolves evidence to places in the corpus."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness.core.errors import DataError
from harness.core.records import Document, Evidence, Query, Span
from harness.data.copies import SHORTEST_COPY, copies_of
from harness.data.corpus import Documents, HeldDocuments
from harness.data.evidence_faults import evidence_faults, unknown_ignored
from harness.data.manifest import MANIFEST, Copies, Manifest, PinnedFile, read_manifest, sha256_of
from harness.data.raw_records import RawEvidence, RawQuery, document
from harness.data.record_files import read_queries, unique
from harness.data.stored_documents import StoredDocuments
from harness.storage.store import Artifact, Key, Store

FORMAT = 1
"""Increased if evidence is located differently, which invalidates what is stored."""

_COLUMNS = ("doc", "start", "end")


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
    documents: Documents
    query_set: QuerySet
    stored: Sequence[Key] = ()
    """The keys of what a store has of it."""

    @property
    def by_id(self) -> Mapping[str, Document]:
        """The documents by id."""
        return self.documents.by_id

    @property
    def number(self) -> Mapping[str, int]:
        """The position of each document in the corpus, counted from 0, by document id."""
        return self.documents.number


def read_query_set(manifest: Manifest, name: str, documents: Documents) -> list[Query]:
    """The queries of a set, also of a locked one, with the evidence that they list, without copies.

    Raises DataError as `load_dataset` does.
    """
    raw = read_queries(manifest.query_set(name))
    return _resolved(raw, documents, _located(manifest.root, raw, documents, "ignore"))


class StoredAt(NamedTuple):
    """A store, and the SHA-256 that corpus and queries had when they were first looked at, for files not pinned."""

    store: Store
    corpus: str
    queries: str


def load_dataset(
    root: Path,
    queries: str,
    *,
    copies: Copies | None = None,
    final: bool = False,
    limit: int | None = None,
    at: StoredAt | None = None,
) -> Dataset:
    """Read and verify a data set folder with one of its query sets; `copies` overrides the setting of its manifest.

    `limit` takes a sample of so many queries. `at` is a store in which documents are packed and evidence is located
    once, and from which they are read as they are needed; without one, all documents are held in memory.

    Raises DataError at the first fault: a file that differs from the pinned one, a malformed line, a duplicate id,
    evidence in an unknown document or out of range, a quote that differs from the text, or a locked set requested
    without `final`.
    """
    manifest = read_manifest(root)
    pinned = open_query_set(manifest, queries, final=final)
    corpus = manifest.corpus
    if at is not None:
        corpus = replace(corpus, sha256=corpus.sha256 or at.corpus)
        pinned = replace(pinned, sha256=pinned.sha256 or at.queries)
    documents = StoredDocuments(at.store, corpus) if at else HeldDocuments(unique(corpus, document))
    raw = read_queries(pinned)
    raw = raw if limit is None else sample(raw, limit)
    credited = copies or manifest.copies

    def located() -> Artifact:
        return _located(root, raw, documents, credited)

    key: Key = {
        "stage": "evidence",
        "format": FORMAT,
        "corpus": corpus.sha256,
        "queries": pinned.sha256,
        "limit": limit,
        "copies": credited,
    }
    places = at.store.get(key, located) if at else located()
    stored = [*documents.keys, key]
    return Dataset(manifest.name, root, documents, QuerySet(queries, _resolved(raw, documents, places)), stored)


def open_query_set(manifest: Manifest, queries: str, *, final: bool = False) -> PinnedFile:
    """The file of a query set. Raises DataError if the set is unknown, or locked and `final` is not set."""
    pinned = manifest.query_set(queries)
    if pinned.locked and not final:
        raise DataError(
            f"{manifest.root / MANIFEST}: query set '{queries}' is locked for the final score; use another set to "
            "choose between trials. `harness run --final` opens this one, and each access is recorded"
        )
    return pinned


def hashed(manifest: Manifest) -> Manifest:
    """The manifest with the current hash of each file that it does not pin."""

    def known(file: PinnedFile) -> PinnedFile:
        return file if file.sha256 or not file.path.exists() else replace(file, sha256=sha256_of(file.path))

    queries = {name: known(file) for name, file in manifest.queries.items()}
    runs = {name: known(file) for name, file in manifest.runs.items()}
    return replace(manifest, corpus=known(manifest.corpus), queries=queries, runs=runs)


def read_corpus(manifest: Manifest) -> list[Document]:
    """All documents. Raises DataError if the file is not the pinned one, is malformed, or repeats an id."""
    return unique(manifest.corpus, document)


def sample(queries: Sequence[RawQuery], count: int) -> list[RawQuery]:
    """So many queries, always the same and in their order: those whose ids have the lowest hashes.

    A larger sample contains a smaller one.
    """
    ranked = sorted(queries, key=lambda query: hashlib.sha256(query.id.encode("utf-8", "surrogatepass")).digest())
    chosen = {query.id for query in ranked[:count]}
    return [query for query in queries if query.id in chosen]


def _located(root: Path, raw: Sequence[RawQuery], documents: Documents, copies: Copies) -> Artifact:
    """The places of all items of evidence, one after another: document number, start and end.

    `offsets`, (items + 1,), says where those of each item begin. Evidence that is not in the corpus has none. Raises
    DataError at the first place that cannot be used.
    """
    for query in raw:
        for fault in (*evidence_faults(query, documents.by_id), *unknown_ignored(query, documents.by_id)):
            raise DataError(f"{query.line}: {fault}; `harness data check {root}` lists every finding")
    items = [(query, item) for query in raw for item in query.evidence]
    found: Mapping[str, list[Span]] = {}
    if copies == "credit":
        cited = (place.span for _, item in items for place in item.places if place.span)
        found = copies_of({documents.by_id[doc].text[start:end] for doc, start, end in cited}, documents)
    places: list[tuple[int, int, int]] = []
    offsets = [0]
    for query, item in items:
        if item.places[0].span is None:
            docs = _whole(item, query, documents, copies)
            places += [(doc, 0, int(documents.lengths[doc])) for doc in docs]
        else:
            spans = [place.span for place in item.places if place.span]
            quotes = [documents.by_id[doc].text[start:end] for doc, start, end in spans]
            spans = list(dict.fromkeys([*spans, *(copy for quote in quotes for copy in found.get(quote, ()))]))
            places += [(documents.number[doc], start, end) for doc, start, end in spans]
        offsets.append(len(places))
    columns = np.array(places, np.int64).reshape(-1, 3)
    return Artifact({"offsets": np.array(offsets), **dict(zip(_COLUMNS, columns.T.copy(), strict=True))})


def _whole(item: RawEvidence, query: RawQuery, documents: Documents, copies: Copies) -> list[int]:
    """The numbers of the documents that are one item of document-level evidence."""
    number = documents.number
    docs = [number[place.doc] for place in item.places if not place.absent]
    if copies == "credit":
        # A copy that the query itself lists as evidence, ignored or irrelevant keeps that role.
        named = {place.doc for other in query.evidence for place in other.places} | {*query.ignore, *query.irrelevant}
        long = [doc for doc in docs if len(documents[doc].text.strip()) >= SHORTEST_COPY]
        equal = dict.fromkeys(copy for doc in long for copy in documents.equal_to(doc))
        docs += [copy for copy in equal if documents.ids[copy] not in named]
    return docs


def _resolved(raw: Sequence[RawQuery], documents: Documents, places: Artifact) -> list[Query]:
    """The queries with the places of their evidence."""
    offsets = places.arrays["offsets"].tolist()
    rows = list(zip(*(places.arrays[name].tolist() for name in _COLUMNS), strict=True))
    bounds = pairwise(offsets)
    ids = documents.ids

    def evidence(item: RawEvidence) -> Evidence:
        lo, hi = next(bounds)
        found = tuple(Span(ids[number], start, end) for number, start, end in rows[lo:hi])
        if item.places[0].span is not None:
            return Evidence(found, item.grade)
        nowhere = tuple(Span(place.doc, 0, 0) for place in item.places)
        return Evidence(found or nowhere, item.grade, whole=True, absent=not found)

    return [
        Query(
            q.id,
            q.text,
            tuple(map(evidence, q.evidence)),
            q.answer,
            q.metadata,
            q.ignore,
            q.irrelevant,
            q.unjudged,
        )
        for q in raw
    ]
