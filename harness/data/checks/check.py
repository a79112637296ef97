"""All findings of a data set folder, each with its file and line."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.core.errors import DataError
from harness.core.progress import progress
from harness.core.records import Document
from harness.core.sequences import Made
from harness.core.text_files import Line
from harness.data.checks.evidence import evidence_findings
from harness.data.checks.findings import Finding
from harness.data.checks.leaks import leaking
from harness.data.checks.near_duplicates import near_duplicate_documents, near_duplicate_queries
from harness.data.checks.sizes import EFFECT, few_queries, short_documents
from harness.data.checks.words import words
from harness.data.corpus import Documents
from harness.data.manifest import Manifest, PinnedFile, read_manifest
from harness.data.open_corpus import kept_aside
from harness.data.raw_records import RawQuery, query
from harness.data.record_files import corpus_lines, records, verify
from harness.data.runs import run_queries


def check_dataset(root: Path, *, effect: float = EFFECT) -> Iterator[Finding]:
    """All findings of a data set: files, documents, and the queries of every set, locked ones included.

    `effect` is the difference of means that the queries should be able to detect. Raises DataError if the manifest
    cannot be read.
    """
    manifest = read_manifest(root)
    yield from _pins(manifest.corpus)
    found: list[Finding] = []
    lines: list[Line] = []
    with kept_aside(manifest.corpus, _documents(manifest.corpus, lines, found)) as documents:
        yield from found
        yield from _near_duplicate_documents(documents, lines)
        yield from short_documents(manifest.corpus.path, documents)
        # If the corpus was not read to its end, missing documents are not known.
        whole = all(finding.code != "malformed" for finding in found)
        yield from _of_queries(manifest, documents, effect, whole=whole)


def _of_queries(manifest: Manifest, documents: Documents, effect: float, *, whole: bool) -> Iterator[Finding]:
    """The findings on query sets and runs; `whole` says whether all documents of the corpus are known."""
    root = manifest.root
    for pinned in (*manifest.queries.values(), *manifest.runs.values()):
        yield from _pins(pinned)
    if not manifest.queries:
        where = root.relative_to(Path.cwd()) if root.is_relative_to(Path.cwd()) else root
        yield Finding("no-queries", str(root), f"`harness data evidence {where} --to validation` makes the first one")
    files = list(manifest.queries.values())
    sets: list[list[RawQuery]] = [[] for _ in files]
    found = [list(_queries(pinned, documents.by_id, queries)) for pinned, queries in zip(files, sets, strict=True)]
    # One pass over the corpus for all sets.
    texts = {(number, item.id): item.text for number, queries in enumerate(sets) for item in queries}
    leaks = leaking(texts, documents)
    for number, (pinned, queries) in enumerate(zip(files, sets, strict=True)):
        yield from (finding for finding in found[number] if whole or finding.code != "unknown-document")
        yield from _leaks(queries, documents.by_id, [leaks.get((number, item.id), []) for item in queries])
        yield from few_queries(pinned.path, queries, effect)
    yield from _near_duplicate_queries(sets)
    for pinned in manifest.runs.values():
        yield from _run(pinned)


def _pins(pinned: PinnedFile) -> Iterator[Finding]:
    try:
        verify(pinned)
    except DataError as error:
        yield _refused("not-pinned", error)
        return
    if not pinned.sha256:
        yield Finding("unpinned", str(pinned.path), "is not pinned; `harness data pin` adds its hash to the manifest")


def _run(pinned: PinnedFile) -> Iterator[Finding]:
    try:
        run_queries(pinned.path)
    except DataError as error:
        yield _refused("malformed", error)


def _refused(code: str, error: DataError, more: str = "") -> Finding:
    """A finding from the error that kept a file from being read; its message begins with the place."""
    where, _, what = str(error).partition(": ")
    return Finding(code, where, what + more)


def _documents(pinned: PinnedFile, lines: list[Line], found: list[Finding]) -> Iterator[Document]:
    """The documents with distinct ids; adds the line of each to `lines`, and the findings on all to `found`."""
    number: dict[str, int] = {}
    size = pinned.size if pinned.path.exists() else 0
    try:
        with progress("read the corpus", max(1, size), unit="bytes") as advance:
            for line, doc in corpus_lines(pinned, advance):
                if doc.id in number:
                    message = f"document '{doc.id}' already occurs in {lines[number[doc.id]].short}"
                    found.append(Finding("duplicate-id", str(line), message))
                    continue
                number[doc.id] = len(lines)
                lines.append(line)
                if not doc.text.strip():
                    found.append(Finding("empty-document", str(line), f"document '{doc.id}' has no text"))
                elif "\x00" in doc.text:
                    found.append(Finding("nul", str(line), f"document '{doc.id}' contains a NUL character"))
                yield doc
        if not number:
            found.append(Finding("empty-file", str(pinned.path), "contains no document"))
    except DataError as error:
        found.append(_refused("malformed", error, " (reading stopped here)"))


def _near_duplicate_documents(documents: Documents, lines: Sequence[Line]) -> Iterator[Finding]:
    texts = Made(len(documents), lambda number: documents[number].text)
    with progress("compare documents", len(documents), unit="documents") as advance:
        for near_duplicate in near_duplicate_documents(texts, advance):
            doc, earlier = documents[near_duplicate.text], documents[near_duplicate.earlier]
            where, other = str(lines[near_duplicate.text]), f"'{earlier.id}' in {lines[near_duplicate.earlier].short}"
            if near_duplicate.same:
                yield Finding("duplicate-document", where, f"document '{doc.id}' has the same text as {other}")
            else:
                message = f"document '{doc.id}' shares {near_duplicate.likeness:.0%} of its word sequences with {other}"
                yield Finding("near-duplicate-document", where, message)


def _queries(pinned: PinnedFile, documents: Mapping[str, Document], queries: list[RawQuery]) -> Iterator[Finding]:
    lines: dict[str, Line] = {}
    try:
        for line, value in records(pinned.path):
            item = query(line, value)
            if item.id in lines:
                message = f"query '{item.id}' already occurs in {lines[item.id].short}"
                yield Finding("duplicate-id", str(line), message)
                continue
            lines[item.id] = line
            queries.append(item)
            if not item.text.strip():
                yield Finding("empty-query", str(line), f"query '{item.id}' has no text")
            if not item.evidence:
                message = f"query '{item.id}' has no evidence: it counts as unanswerable"
                yield Finding("no-evidence", str(line), message)
            yield from evidence_findings(item, documents)
        if not lines:
            yield Finding("empty-file", str(pinned.path), "contains no query")
    except DataError as error:
        yield _refused("malformed", error, " (reading stopped here)")


def _near_duplicate_queries(sets: Sequence[Sequence[RawQuery]]) -> Iterator[Finding]:
    """Findings for queries that equal or resemble an earlier one, of the same set or of another."""
    every = [(number, item) for number, queries in enumerate(sets) for item in queries]

    def related(one: int, other: int) -> bool:
        return _may_be_duplicates(every[one][1], every[other][1])

    for near_duplicate in near_duplicate_queries([item.text for _, item in every], related):
        (of, item), (of_earlier, earlier) = every[near_duplicate.text], every[near_duplicate.earlier]
        where, other = str(item.line), f"'{earlier.id}' in {earlier.line.short}"
        differ = "" if _needs(item) == _needs(earlier) else ", and has other evidence"
        message = (
            "asks the same as" if near_duplicate.same else f"shares {near_duplicate.likeness:.0%} of its words with"
        )
        if of != of_earlier:
            code, differ = "query-in-two-sets", f" of {earlier.line.path.name}"
        else:
            code = "duplicate-query" if near_duplicate.same else "near-duplicate-query"
        yield Finding(code, where, f"query '{item.id}' {message} {other}{differ}")


def _may_be_duplicates(one: RawQuery, other: RawQuery) -> bool:
    """Whether two queries share an evidence document, or both have none; otherwise they ask different things."""
    left, right = _needed_documents(one), _needed_documents(other)
    return bool(left & right) or not (left or right)


def _needs(item: RawQuery) -> set[tuple[str, int | None, int | None]]:
    return {place.span or (place.doc, None, None) for evidence in item.evidence for place in evidence.places}


def _needed_documents(item: RawQuery) -> set[str]:
    return {doc for doc, _, _ in _needs(item)}


def _is_document(item: RawQuery, doc: Document) -> bool:
    """Whether a query is most of the document with its id, rather than a question quoted from its evidence."""
    return item.id not in _needed_documents(item) and 2 * len(words(item.text)) >= len(words(doc.text))


def _leaks(
    queries: Sequence[RawQuery], documents: Mapping[str, Document], found: Sequence[Sequence[str]]
) -> Iterator[Finding]:
    """Findings for queries whose text occurs in documents; `found` lists these documents for each query."""
    for item, holding in zip(queries, found, strict=True):
        docs = [doc for doc in holding if doc not in item.ignore]
        if not docs:
            continue
        if item.id in docs and _is_document(item, documents[item.id]):
            message = (
                f"query '{item.id}' is the document with that id; `ignore: [\"{item.id}\"]` keeps it out of its ranking"
            )
            yield Finding("self-query", str(item.line), message)
            continue
        more = f" and {len(docs) - 1} more" if len(docs) > 1 else ""
        where = "document" if _needed_documents(item).isdisjoint(docs) else "its evidence document"
        message = f"query '{item.id}' occurs word for word in {where} '{docs[0]}'{more}"
        yield Finding("leaking-query", str(item.line), message)
