"""Queries whose words stand in the corpus as they are: any lexical search finds that place."""

import re
from collections.abc import Iterable, Mapping

from harness.model import Document

SHORTEST = 5
"""Words of a query below which a match is no leak: a short question is also a heading."""

_WORD = re.compile(r"\w+")


def leaking(queries: Mapping[str, str], documents: Iterable[Document]) -> dict[str, list[str]]:
    """The documents that hold the text of a query, by query id; case, punctuation and white space do not count."""
    wanted: dict[tuple[str, str, str], list[tuple[str, list[str]]]] = {}
    for name, text in queries.items():
        words = _WORD.findall(text.lower())
        if len(words) >= SHORTEST:
            wanted.setdefault((words[0], words[1], words[2]), []).append((name, words))
    found: dict[str, list[str]] = {}
    for doc in documents if wanted else ():
        words = _WORD.findall(doc.text.lower())
        for at, head in enumerate(zip(words, words[1:], words[2:], strict=False)):
            for name, asked in wanted.get(head, ()):
                if words[at : at + len(asked)] == asked and doc.id not in found.setdefault(name, []):
                    found[name].append(doc.id)
    return {name: docs for name, docs in found.items() if docs}
