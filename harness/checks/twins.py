"""Texts that are the same, or nearly the same, as an earlier one."""

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

LIKE = 0.8
"""Jaccard similarity from which on texts count as nearly the same."""
SHINGLE = 5
"""Words in a row by which documents are compared."""
FEWEST = 10
"""Shingles below which documents are not compared: so short a text is easily like another."""

_WORD = re.compile(r"\w+")
_PERMUTATIONS = 128
_BLOCK = 8192

Marks = frozenset[bytes]


class Twin(NamedTuple):
    """A text's number, the earlier text it is like or the `same` as, and their Jaccard similarity."""

    text: int
    earlier: int
    likeness: float
    same: bool = False


def document_twins(texts: Sequence[str], advance: Callable[[int], None] = lambda _: None) -> Iterator[Twin]:
    """Documents like an earlier one, each told once: the same but for white space, else by their runs of words."""
    return _twins(texts, _shingles, FEWEST, advance)


def query_twins(texts: Sequence[str]) -> Iterator[Twin]:
    """Queries like an earlier one, each told once: the same but for case and punctuation, else by their words.

    Queries that differ in a number ask different things, whatever else they share.
    """
    return _twins([" ".join(_WORD.findall(text.lower())) for text in texts], _words, 1, lambda _: None)


def _shingles(text: str) -> Marks:
    words = _WORD.findall(text.lower())
    return frozenset(" ".join(words[at : at + SHINGLE]).encode() for at in range(len(words) - SHINGLE + 1))


def _words(text: str) -> Marks:
    return frozenset(word.encode() for word in text.split())


def _twins(
    texts: Sequence[str], marks_of: Callable[[str], Marks], fewest: int, advance: Callable[[int], None]
) -> Iterator[Twin]:
    from datasketch import MinHashLSH

    index = MinHashLSH(threshold=LIKE - 0.1, num_perm=_PERMUTATIONS)
    same: dict[str, int] = {}
    for at, text in enumerate(texts):
        advance(1)
        bare = " ".join(text.split())
        if not bare:
            continue
        if same.setdefault(bare, at) != at:
            yield Twin(at, same[bare], 1.0, same=True)
            continue
        marks = marks_of(text)
        if len(marks) < fewest:
            continue
        sketch = _sketch(marks)
        candidates = sorted(index.query(sketch))
        index.insert(at, sketch)
        likest = max(((_jaccard(marks, marks_of(texts[other])), -other) for other in candidates), default=(0.0, 0))
        if likest[0] >= LIKE:
            yield Twin(at, -likest[1], likest[0])


def _jaccard(one: Marks, other: Marks) -> float:
    if _numbers_differ(one, other):
        return 0.0
    return len(one & other) / len(one | other)


def _numbers_differ(one: Marks, other: Marks) -> bool:
    """Whether two sets of single words differ in a number; runs of words are compared as they are."""
    apart = one ^ other
    return any(mark.isdigit() for mark in apart)


def _sketch(marks: Marks) -> Any:
    from datasketch import MinHash

    made = MinHash(num_perm=_PERMUTATIONS, hashfunc=zlib.crc32)
    ordered = list(marks)
    for start in range(0, len(ordered), _BLOCK):
        made.update_batch(ordered[start : start + _BLOCK])
    return made
