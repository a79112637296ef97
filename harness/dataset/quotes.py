"""Where a quote stands in a text: exactly, or but for the white space in it."""

import re
from collections.abc import Iterator

_GAP = re.compile(r"\s+")


def occurrences(text: str, quote: str) -> list[int]:
    """All offsets at which `quote` stands in `text`, overlapping ones included; none for an empty quote."""
    return list(_occurrences(text, quote))


def _occurrences(text: str, quote: str) -> Iterator[int]:
    at = text.find(quote) if quote else -1
    while at >= 0:
        yield at
        at = text.find(quote, at + 1)


def loose_occurrences(text: str, quote: str) -> list[tuple[int, int]]:
    """All stretches `(start, end)` of a text that equal the quote but for the white space between its words.

    White space at the ends of the quote does not count.

    >>> loose_occurrences("Salt  the\\nwater.", " Salt the water. ")
    [(0, 16)]
    """
    words = _GAP.split(quote.strip())
    if words == [""]:
        return []
    # Looked ahead, so that places may overlap.
    gapped = r"\s+".join(map(re.escape, words))
    return [found.span(1) for found in re.finditer(f"(?=({gapped}))", text)]


def inside_word(text: str, at: int) -> bool:
    """Whether the offset lies between two letters or digits."""
    return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()


def standing(text: str, quote: str) -> tuple[int, list[tuple[int, int]]]:
    """Where a quote stands, and how well: 3 as whole words, 2 inside words, 1 but for white space, 0 nowhere.

    >>> standing("A cat in a category.", "cat")
    (3, [(2, 5)])
    """
    exact = [(start, start + len(quote)) for start in occurrences(text, quote)]
    whole = [(start, end) for start, end in exact if not inside_word(text, start) and not inside_word(text, end)]
    if whole or exact:
        return (3, whole) if whole else (2, exact)
    loose = loose_occurrences(text, quote)
    return int(bool(loose)), loose
