"""Packing a corpus file into the store in one pass: its documents in parts, and what is known about all of them."""

import json
from array import array
from collections.abc import Iterable
from itertools import islice

import numpy as np

from harness.core.errors import DataError
from harness.core.records import Document, Ints
from harness.core.text_files import Advance, Line
from harness.data.corpus import Digests, short_digest
from harness.data.manifest import PinnedFile
from harness.data.record_files import corpus_lines, repeated, verify
from harness.storage.store import LARGE, Artifact, Key, Store

FORMAT = 1

PART = 2 * LARGE
"""Bytes of documents in one part; a part of this size is mapped, so it takes memory only where it is read."""

FIELDS = 4
"""The texts of a document in a part: id, title, metadata as JSON (empty if there are none) and text."""


def key_of(corpus: PinnedFile, part: int | None = None) -> Key:
    """The key of a part, or of what is known about all documents."""
    key = {"stage": "documents", "format": FORMAT, "corpus": corpus.sha256}
    return key if part is None else {**key, "stage": "document_part", "part": part}


def pack(store: Store, corpus: PinnedFile, advance: Advance | None = None) -> Artifact:
    """Store the documents of a corpus file, as `packed` does; `advance` gets the bytes read.

    Raises DataError if the file is not the pinned one, is malformed, or repeats an id.
    """
    verify(corpus)
    made = packed(store, corpus, (doc for _, doc in corpus_lines(corpus, advance)))
    if not len(made.arrays["lengths"]):
        raise DataError(f"{corpus.path}: contains no document")
    _refuse_repeated(corpus, made.arrays["ids"], made.arrays["order"])
    return made


def packed(store: Store, corpus: PinnedFile, documents: Iterable[Document]) -> Artifact:
    """Store documents in parts, and return what is known about all of them, in arrays of shape (documents,).

    `lengths` are in characters, `texts` are `Documents.text_digests`, `ids` are the sorted digests of the ids and
    `order` their documents; `first`, (parts + 1,), is the first document of each part.
    """
    lengths, ids, texts = array("q"), array("Q"), array("Q")
    first = [0]
    part = _Part()
    for doc in documents:
        lengths.append(len(doc.text))
        ids.append(short_digest(doc.id))
        texts.append(short_digest(doc.text.strip()))
        part.add(doc)
        if part.size >= PART:
            store.get(key_of(corpus, len(first) - 1), part.finished)
            first.append(len(lengths))
            part = _Part()
    if part.size:
        store.get(key_of(corpus, len(first) - 1), part.finished)
        first.append(len(lengths))
    digests = np.frombuffer(ids, np.uint64)
    order = np.argsort(digests, kind="stable")
    return Artifact(
        {
            "first": np.array(first),
            "lengths": np.frombuffer(lengths, np.int64),
            "texts": np.frombuffer(texts, np.uint64),
            "ids": digests[order],
            "order": order,
        }
    )


def pack_part(corpus: PinnedFile, first: int, last: int) -> Artifact:
    """Return one part again, from document number `first` to before `last`: what was stored is damaged or removed."""
    verify(corpus)
    part = _Part()
    for _, doc in islice(corpus_lines(corpus), first, last):
        part.add(doc)
    return part.finished()


class _Part:
    """The documents of a part, as `content` and the `bounds` of its texts in bytes, (documents * FIELDS + 1,)."""

    def __init__(self) -> None:
        self.size = 0
        self._content: list[bytes] = []
        self._bounds = array("q", [0])

    def add(self, doc: Document) -> None:
        for text in (doc.id, doc.title, json.dumps(doc.metadata) if doc.metadata else "", doc.text):
            content = text.encode()
            self._content.append(content)
            self.size += len(content)
            self._bounds.append(self.size)

    def finished(self) -> Artifact:
        content = np.frombuffer(b"".join(self._content), np.uint8)
        return Artifact({"content": content, "bounds": np.frombuffer(self._bounds, np.int64)})


def _refuse_repeated(corpus: PinnedFile, digests: Digests, order: Ints) -> None:
    """Raise DataError if an id occurs twice; different ids rarely share a digest. The file is read again only then."""
    suspects = set(digests[1:][digests[1:] == digests[:-1]].tolist())
    if not suspects:
        return
    numbers = {number for digest in suspects for number in order[_equal(digests, digest)].tolist()}
    seen: dict[str, Line] = {}
    for number, (line, doc) in enumerate(corpus_lines(corpus)):
        if number in numbers:
            if doc.id in seen:
                raise repeated(line, doc.id, seen[doc.id])
            seen[doc.id] = line


def _equal(digests: Digests, digest: int) -> slice:
    wanted = np.uint64(digest)
    return slice(np.searchsorted(digests, wanted), np.searchsorted(digests, wanted, side="right"))
