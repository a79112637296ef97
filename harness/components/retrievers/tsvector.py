"""Words in the notation of PostgreSQL's full text search."""

from collections.abc import Iterable

from harness.components.retrievers.database_searches import analyzed

_LONGEST = 2046
"""Bytes of a word in a `tsvector`."""


def words_of(text: str) -> list[str]:
    """Return the words of a text as `bm25` counts them, but for those that PostgreSQL does not take."""
    return [word for word in analyzed(text).split() if len(word.encode()) <= _LONGEST]


def as_tsvector(words: Iterable[str]) -> str:
    """Return words with their positions.

    >>> as_tsvector(["rock", "n", "rock"])
    "'rock':1,3 'n':2"
    """
    places: dict[str, list[str]] = {}
    for at, word in enumerate(words, 1):
        places.setdefault(word, []).append(str(at))
    return " ".join(f"{_quoted(word)}:{','.join(at)}" for word, at in places.items())


def any_of(words: Iterable[str]) -> str:
    """Return a `tsquery` that any of the words satisfies.

    >>> any_of(["rock", "o'clock", "rock"])
    "'rock' | 'o''clock'"
    """
    return " | ".join(map(_quoted, dict.fromkeys(words)))


def storable(text: str) -> str:
    """Return a text without the character NUL, which PostgreSQL cannot store."""
    return text.replace("\0", " ")


def _quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"
