"""The documents of a corpus by number and by id, whether they are in memory or on disk."""

import hashlib
from abc import abstractmethod
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from harness.core.records import Document, Ints
from harness.core.sequences import Joined, Lazy, Made
from harness.storage.store import Key

Digests = npt.NDArray[np.uint64]


class Documents(Lazy[Document]):
    """The documents of a corpus, in its order. A document's number is its position, counted from 0."""

    @property
    def keys(self) -> Sequence[Key]:
        """The keys of what a store has of them."""
        return ()

    @property
    @abstractmethod
    def lengths(self) -> Ints:
        """The number of characters of each document, (documents,)."""

    @property
    @abstractmethod
    def text_digests(self) -> Digests:
        """`short_digest` of each text without the white space around it, (documents,)."""

    @property
    @abstractmethod
    def number(self) -> Mapping[str, int]:
        """The number of each document, by id."""

    @property
    def by_id(self) -> Mapping[str, Document]:
        """The documents, by id."""
        return ById(self)

    @property
    def ids(self) -> Sequence[str]:
        """The id of each document."""
        return Made(len(self), lambda number: self[number].id)

    def text(self, number: int) -> str:
        """The text of a document."""
        return self[number].text

    def equal_to(self, number: int) -> list[int]:
        """The numbers of all documents with the same text, including this one, ignoring white space around it."""
        order, digests = self._by_digest
        wanted = self.text_digests[number]
        lo, hi = np.searchsorted(digests, wanted), np.searchsorted(digests, wanted, side="right")
        text = self[number].text.strip()
        return sorted(other for other in order[lo:hi].tolist() if self[other].text.strip() == text)

    @cached_property
    def _by_digest(self) -> tuple[Ints, Digests]:
        order = np.argsort(self.text_digests, kind="stable")
        return order, self.text_digests[order]


class HeldDocuments(Documents):
    """Documents in memory. Their ids must be distinct."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents

    def __len__(self) -> int:
        return len(self._documents)

    def _item(self, number: int) -> Document:
        return self._documents[number]

    @cached_property
    def lengths(self) -> Ints:
        """The number of characters of each document, (documents,)."""
        return np.array([len(doc.text) for doc in self._documents], np.int64)

    @cached_property
    def text_digests(self) -> Digests:
        """`short_digest` of each text without the white space around it, (documents,)."""
        return np.array([short_digest(doc.text.strip()) for doc in self._documents], np.uint64)

    @cached_property
    def number(self) -> Mapping[str, int]:
        """The number of each document, by id."""
        return {doc.id: at for at, doc in enumerate(self._documents)}


class Extended(Documents):
    """The documents of a corpus, and others after them that it lacks; all ids must be distinct."""

    def __init__(self, corpus: Documents, others: Sequence[Document]) -> None:
        self._corpus, self._others = corpus, HeldDocuments(others)

    def __len__(self) -> int:
        return len(self._corpus) + len(self._others)

    def _item(self, number: int) -> Document:
        first = len(self._corpus)
        return self._corpus[number] if number < first else self._others[number - first]

    @cached_property
    def lengths(self) -> Ints:
        """The number of characters of each document, (documents,)."""
        return np.concatenate([self._corpus.lengths, self._others.lengths])

    @cached_property
    def text_digests(self) -> Digests:
        """`short_digest` of each text without the white space around it, (documents,)."""
        return np.concatenate([self._corpus.text_digests, self._others.text_digests])

    @cached_property
    def number(self) -> Mapping[str, int]:
        """The number of each document, by id."""
        first = len(self._corpus)
        return ChainMap({doc.id: first + at for at, doc in enumerate(self._others)}, cast(Any, self._corpus.number))

    @cached_property
    def ids(self) -> Sequence[str]:
        """The id of each document."""
        return Joined([self._corpus.ids, self._others.ids])

    def text(self, number: int) -> str:
        """The text of a document."""
        first = len(self._corpus)
        return self._corpus.text(number) if number < first else self._others.text(number - first)


class ById(Mapping[str, Document]):
    """The documents of a corpus by id."""

    def __init__(self, documents: Documents) -> None:
        self._documents, self._number = documents, documents.number

    def __getitem__(self, name: str) -> Document:
        return self._documents[self._number[name]]

    def __contains__(self, name: object) -> bool:
        return name in self._number

    def __iter__(self) -> Iterator[str]:
        return (doc.id for doc in self._documents)

    def __len__(self) -> int:
        return len(self._documents)


def short_digest(text: str) -> int:
    """The first 64 bits of a text's BLAKE2b. Equal texts have equal digests; others almost never do."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
