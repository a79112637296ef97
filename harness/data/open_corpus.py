"""The documents for a command that keeps no store: in memory if they are few, else in a temporary folder."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from harness.core.progress import progress
from harness.core.records import Document
from harness.data.corpus import Documents, HeldDocuments
from harness.data.dataset import read_corpus
from harness.data.manifest import Manifest, PinnedFile, sha256_of
from harness.data.packing import key_of, pack, packed
from harness.data.record_files import verify
from harness.data.stored_documents import StoredDocuments
from harness.storage.store import Store

HELD = 64_000_000
"""Bytes of a corpus that is held in memory."""


@contextmanager
def open_corpus(manifest: Manifest) -> Iterator[Documents]:
    """Yield the documents; those of a large corpus are read from a temporary folder as they are needed.

    Raises DataError if the file is not the pinned one, is malformed, or repeats an id.
    """
    corpus = manifest.corpus
    verify(corpus)
    if corpus.size <= HELD:
        yield HeldDocuments(read_corpus(manifest))
        return
    corpus = replace(corpus, sha256=corpus.sha256 or sha256_of(corpus.path))
    with temporary_store() as store:
        with progress("read the corpus", corpus.size, unit="bytes") as advance:
            store.get(key_of(corpus), lambda: pack(store, corpus, advance))
        yield StoredDocuments(store, corpus)


@contextmanager
def kept_aside(corpus: PinnedFile, documents: Iterable[Document]) -> Iterator[Documents]:
    """Yield documents that are read only now, in memory if the corpus is small, else from a temporary folder.

    They must have distinct ids, and need not be all that the corpus has.
    """
    if not corpus.path.exists() or corpus.size <= HELD:
        yield HeldDocuments(list(documents))
        return
    with temporary_store() as store:
        store.get(key_of(corpus), lambda: packed(store, corpus, documents))
        yield StoredDocuments(store, corpus)


@contextmanager
def temporary_store() -> Iterator[Store]:
    """Yield a store in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="harness-") as folder:
        yield Store(Path(folder))
