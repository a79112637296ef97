"""Queries that occur word for word in the corpus: any lexical search finds that place."""

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from harness.core.records import Document
from harness.data.checks.words import words

Key = TypeVar("Key", bound=Hashable)

SHORTEST = 5
"""Minimum words of a query for a match to count as a leak: a short question may also be a heading."""


def leaking(queries: Mapping[Key, str], documents: Iterable[Document]) -> dict[Key, list[str]]:
    """The ids of the documents that contain a query, by its key, ignoring case, punctuation and white space."""
    wanted: dict[tuple[str, str, str], list[tuple[Key, list[str]]]] = {}
    for name, text in queries.items():
        asked = words(text)
        if len(asked) >= SHORTEST:
            wanted.setdefault((asked[0], asked[1], asked[2]), []).append((name, asked))
    found: dict[Key, list[str]] = {}
    for doc in documents if wanted else ():
        there = words(doc.text)
        for at, head in enumerate(zip(there, there[1:], there[2:], strict=False)):
            for name, asked in wanted.get(head, ()):
                if there[at : at + len(asked)] == asked and doc.id not in found.setdefault(name, []):
                    found[name].append(doc.id)
    return {name: docs for name, docs in found.items() if docs}
