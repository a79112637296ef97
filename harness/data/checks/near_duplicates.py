"""Texts that are the same or nearly the same as an earlier one."""

import hashlib
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from harness.core.records import Ints
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

_IN_MEMORY = 50_000
"""Texts whose sketches, of 512 bytes each, are in memory."""
_ALIKE = 100
"""The earlier texts with an equal band that a text is compared with at most."""

Marks = frozenset[bytes]
Sketches = npt.NDArray[np.uint32]
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
    same: dict[bytes, int] = {}
    first_of: dict[int, int] = {}
    with _sketches(len(texts)) as sketches:
        compared = np.zeros(len(texts), np.bool_)
        for at, text in enumerate(texts):
            advance(1)
            bare = plain(text)
            if not bare:
                continue
            digest = hashlib.blake2b(bare.encode("utf-8", "surrogatepass"), digest_size=16).digest()
            if same.setdefault(digest, at) != at:
                first_of[at] = same[digest]
                continue
            sketches[at] = _sketch(marks_of(text))
            compared[at] = True
        candidates = _candidates(sketches, np.flatnonzero(compared))
    for at in sorted({*first_of, *candidates}):
        if at in first_of:
            yield NearDuplicate(at, first_of[at], 1.0, same=True)
            continue
        marks = marks_of(texts[at])
        others = (other for other in sorted(candidates[at]) if related(at, other))
        most_similar = max(((_jaccard(marks, marks_of(texts[other])), -other) for other in others), default=(0.0, 0))
        if most_similar[0] >= LIKE:
            yield NearDuplicate(at, -most_similar[1], most_similar[0])


@contextmanager
def _sketches(count: int) -> Iterator[Sketches]:
    """Room for a sketch of each text; on disk if there are many."""
    if count <= _IN_MEMORY:
        yield np.zeros((count, _PERMUTATIONS), np.uint32)
        return
    with tempfile.TemporaryFile() as file:
        yield np.memmap(file, np.uint32, "w+", shape=(count, _PERMUTATIONS))


def _candidates(sketches: Sketches, compared: Ints) -> dict[int, set[int]]:
    """The earlier texts that each text may resemble: those with an equal band of their sketches.

    The bands are those of datasketch for this threshold (Leskovec, Rajaraman & Ullman, Mining of Massive Datasets,
    section 3.4). Of very many texts with an equal band, only the first ones count.
    """
    from datasketch import MinHashLSH

    bands = MinHashLSH(threshold=_LOOKED_AT, num_perm=_PERMUTATIONS)
    factors = np.random.default_rng(0).integers(0, 2**63, bands.r, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    found: dict[int, set[int]] = {}
    for first in range(0, bands.b * bands.r, bands.r):
        # One number for the band of each text; two that differ rarely share one, and then are compared in vain.
        band = np.zeros(len(compared), np.uint64)
        for column, factor in enumerate(factors, first):
            band = (band ^ sketches[compared, column]) * factor
        order = np.argsort(band, kind="stable")
        starts = np.flatnonzero(np.concatenate([[True], band[order][1:] != band[order][:-1]]))
        for begin, end in zip(starts, [*starts[1:], len(order)], strict=True):
            alike = compared[order[begin:end]].tolist() if end - begin > 1 else ()
            for number, text in enumerate(alike):
                if number:
                    found.setdefault(text, set()).update(alike[: min(number, _ALIKE)])
    return found


def _jaccard(one: Marks, other: Marks) -> float:
    if _numbers_differ(one, other):
        return 0.0
    return len(one & other) / len(one | other)


def _numbers_differ(one: Marks, other: Marks) -> bool:
    """Whether two texts differ in a number; marks of several words are not looked at."""
    different = one ^ other
    return any(b" " not in mark and any(character.isdigit() for character in mark.decode()) for mark in different)


def _sketch(marks: Marks) -> Any:
    """The MinHash of a text's marks, (permutations,)."""
    from datasketch import MinHash

    made = MinHash(num_perm=_PERMUTATIONS, hashfunc=zlib.crc32)
    ordered = list(marks)
    for start in range(0, len(ordered), _BLOCK):
        made.update_batch(ordered[start : start + _BLOCK])
    return made.hashvalues.astype(np.uint32)
