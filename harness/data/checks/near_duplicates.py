"""Texts that are the same or nearly the same as an earlier one."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from harness.data.checks.words import words

LIKE = 0.8
"""Minimum Jaccard similarity of near-duplicates."""
SHINGLE = 5
"""Words per shingle; documents are compared by their shingles."""
FEWEST = 10
"""A document with fewer shingles is compared as a whole: short texts are easily similar by chance."""

_PERMUTATIONS = 128
_BLOCK = 8192
_LOOKED_AT = LIKE - 0.25
"""Pairs with at least this estimated similarity are compared exactly; pairs that the estimate misses are not found."""

Marks = frozenset[bytes]
Related = Callable[[int, int], bool]


class NearDuplicate(NamedTuple):
    """The index of a text, that of the earlier text it equals (`same`) or resembles, and their Jaccard similarity."""

    text: int
    earlier: int
    likeness: float
    same: bool = False


def near_duplicate_documents(
    texts: Sequence[str], advance: Callable[[int], None] = lambda _: None
) -> Iterator[NearDuplicate]:
    """Documents that equal or resemble an earlier one, each reported once with the most similar one.

    Equal means equal except for white space; others are compared by their shingles. `advance` is called with 1 for each
    text.
    """
    return _near_duplicates(texts, _runs, lambda text: " ".join(text.split()), advance)


def near_duplicate_queries(texts: Sequence[str], related: Related = lambda one, other: True) -> Iterator[NearDuplicate]:
    """Queries that equal or resemble an earlier one, each reported once: by their words, and pairs of words.

    Queries that differ in a number never count as similar. Queries that are not `related` count only if their words are
    the same; `related` is called with the indices of two queries in `texts`.
    """
    return _near_duplicates(texts, _pairs, lambda text: " ".join(words(text)), lambda _: None, related)


def _runs(text: str) -> Marks:
    found = words(text)
    if len(found) < SHINGLE + FEWEST - 1:
        return frozenset([(" ".join(found) or text).encode("utf-8", "replace")])
    return frozenset(" ".join(found[at : at + SHINGLE]).encode() for at in range(len(found) - SHINGLE + 1))


def _pairs(text: str) -> Marks:
    found = words(text)
    pairs = (f"{one} {other}" for one, other in pairwise(found))
    return frozenset(mark.encode() for mark in (*found, *pairs))


def _near_duplicates(
    texts: Sequence[str],
    marks_of: Callable[[str], Marks],
    plain: Callable[[str], str],
    advance: Callable[[int], None],
    related: Related = lambda one, other: True,
) -> Iterator[NearDuplicate]:
    from datasketch import MinHashLSH

    index = MinHashLSH(threshold=_LOOKED_AT, num_perm=_PERMUTATIONS)
    same: dict[str, int] = {}
    for at, text in enumerate(texts):
        advance(1)
        bare = plain(text)
        if not bare:
            continue
        if same.setdefault(bare, at) != at:
            yield NearDuplicate(at, same[bare], 1.0, same=True)
            continue
        marks = marks_of(text)
        sketch = _sketch(marks)
        candidates = sorted(other for other in index.query(sketch) if related(at, other))
        index.insert(at, sketch)
        most_similar = max(
            ((_jaccard(marks, marks_of(texts[other])), -other) for other in candidates), default=(0.0, 0)
        )
        if most_similar[0] >= LIKE:
            yield NearDuplicate(at, -most_similar[1], most_similar[0])


def _jaccard(one: Marks, other: Marks) -> float:
    if _numbers_differ(one, other):
        return 0.0
    return len(one & other) / len(one | other)


def _numbers_differ(one: Marks, other: Marks) -> bool:
    """Whether two texts differ in a number; marks of several words are not looked at."""
    different = one ^ other
    return any(b" " not in mark and any(character.isdigit() for character in mark.decode()) for mark in different)


def _sketch(marks: Marks) -> Any:
    from datasketch import MinHash

    made = MinHash(num_perm=_PERMUTATIONS, hashfunc=zlib.crc32)
    ordered = list(marks)
    for start in range(0, len(ordered), _BLOCK):
        made.update_batch(ordered[start : start + _BLOCK])
    return made
