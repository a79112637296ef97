"""The documents of a corpus in the store: packed in one pass over the corpus file, then read as they are needed.

No process holds a large corpus in memory: the packed texts are memory-mapped, and made into Python objects when they
are read.
"""

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from harness.core.records import Document, Ints
from harness.core.sequences import Made
from harness.data.corpus import Digests, Documents, short_digest
from harness.data.manifest import PinnedFile
from harness.data.packing import FIELDS, key_of, pack, pack_part
from harness.storage.store import Key, Store

KEPT = 128_000_000
"""Characters of a corpus whose documents are kept as Python objects once they were read; of a larger one, none are."""


class StoredDocuments(Documents):
    """The documents of a corpus file that is identified by its SHA-256, packed when they are first needed.

    That raises DataError if the file is not the pinned one, is malformed, or repeats an id.
    """

    def __init__(self, store: Store, corpus: PinnedFile) -> None:
        self._store, self._corpus = store, corpus
        self._parts: dict[int, tuple[memoryview, memoryview]] = {}
        self._kept: dict[int, Document] = {}

    @property
    def keys(self) -> list[Key]:
        """The keys of all that is stored."""
        return [key_of(self._corpus, part) for part in (None, *range(len(self._firsts) - 1))]

    @cached_property
    def _head(self) -> Mapping[str, Any]:
        return self._store.get(key_of(self._corpus), lambda: pack(self._store, self._corpus)).arrays

    @cached_property
    def _firsts(self) -> list[int]:
        """The first document of each part, and the number of documents."""
        return [int(number) for number in self._head["first"]]

    def __len__(self) -> int:
        return self._firsts[-1]

    @property
    def lengths(self) -> Ints:
        """The number of characters of each document, (documents,)."""
        return np.asarray(self._head["lengths"])

    @property
    def text_digests(self) -> Digests:
        """`short_digest` of each text without the white space around it, (documents,)."""
        return np.asarray(self._head["texts"])

    @cached_property
    def number(self) -> Mapping[str, int]:
        """The number of each document, by id."""
        return _Numbers(self.ids, np.asarray(self._head["ids"]), np.asarray(self._head["order"]))

    @cached_property
    def ids(self) -> Sequence[str]:
        """The id of each document, read without its text."""
        return Made(len(self), self._id)

    @cached_property
    def _keeps(self) -> bool:
        return int(self.lengths.sum()) <= KEPT

    def _item(self, number: int) -> Document:
        known = self._kept.get(number)
        if known is None:
            known = self._read(number)
            if self._keeps:
                self._kept[number] = known
        return known

    def text(self, number: int) -> str:
        """The text of a document, without the rest of it."""
        known = self._kept.get(number)
        if known is not None:
            return known.text
        content, bounds, at = self._place(number)
        return str(content[bounds[at + FIELDS - 1] : bounds[at + FIELDS]], "utf-8")

    def _id(self, number: int) -> str:
        content, bounds, at = self._place(number)
        return str(content[bounds[at] : bounds[at + 1]], "utf-8")

    def _read(self, number: int) -> Document:
        content, bounds, at = self._place(number)
        name, title, metadata = bounds[at + 1], bounds[at + 2], bounds[at + 3]
        return Document(
            str(content[bounds[at] : name], "utf-8"),
            str(content[metadata : bounds[at + FIELDS]], "utf-8"),
            str(content[name:title], "utf-8") if title > name else "",
            json.loads(bytes(content[title:metadata])) if metadata > title else {},
        )

    def _place(self, number: int) -> tuple[memoryview, memoryview, int]:
        """The content of a document's part, the bounds of the texts in it, and where those of the document begin."""
        part = bisect_right(self._firsts, number) - 1
        first, last = self._firsts[part], self._firsts[part + 1]
        if part not in self._parts:
            key = key_of(self._corpus, part)
            arrays = self._store.get(key, lambda: pack_part(self._corpus, first, last)).arrays
            # Single items of a memoryview are read several times as fast as those of an array.
            self._parts[part] = arrays["content"].data, arrays["bounds"].data
        content, bounds = self._parts[part]
        return content, bounds, (number - first) * FIELDS


class _Numbers(Mapping[str, int]):
    """The numbers of documents by id, found by the sorted digests of all ids."""

    def __init__(self, ids: Sequence[str], digests: Digests, order: Ints) -> None:
        self._ids, self._digests, self._order = ids, digests, order
        self._known: dict[str, int] = {}

    def __getitem__(self, name: str) -> int:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._found(name)
        return known

    def _found(self, name: str) -> int:
        wanted = np.uint64(short_digest(name))
        lo, hi = np.searchsorted(self._digests, wanted), np.searchsorted(self._digests, wanted, side="right")
        for number in self._order[lo:hi].tolist():
            if self._ids[number] == name:
                return int(number)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)
