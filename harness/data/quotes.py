"""Finding a quote in a text: exactly, or ignoring differences in white space."""

import re
from collections.abc import Iterator

_GAP = re.compile(r"\s+")


def occurrences(text: str, quote: str) -> list[int]:
    """All offsets at which `quote` occurs in `text`, overlapping ones included; none for an empty quote."""
    return list(_occurrences(text, quote))


def _occurrences(text: str, quote: str) -> Iterator[int]:
    at = text.find(quote) if quote else -1
    while at >= 0:
        yield at
        at = text.find(quote, at + 1)


def loose_occurrences(text: str, quote: str) -> list[tuple[int, int]]:
    """All spans `(start, end)` of a text that equal the quote except for the white space between words.

    White space at the ends of the quote is ignored.

    >>> loose_occurrences("Salt  the\\nwater.", " Salt the water. ")
    [(0, 16)]
    """
    wanted = " ".join(quote.split())
    if not wanted:
        return []
    joined, places = _joined(text)
    # A space in `joined` may be several characters of the text; `wanted` has no space at its ends.
    return [(places[at], places[at + len(wanted) - 1] + 1) for at in _occurrences(joined, wanted)]


def _joined(text: str) -> tuple[str, list[int]]:
    """The text with one space for each run of white space, and the offset of each character in the original."""
    parts: list[str] = []
    places: list[int] = []
    done = 0
    for gap in _GAP.finditer(text):
        parts += [text[done : gap.start()], " "]
        places += [*range(done, gap.start()), gap.start()]
        done = gap.end()
    return "".join([*parts, text[done:]]), [*places, *range(done, len(text))]


def inside_word(text: str, at: int) -> bool:
    """Whether the offset lies between two letters or digits."""
    return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()


def standing(text: str, quote: str) -> tuple[int, list[tuple[int, int]]]:
    """The places of a quote and how well they match: 3 whole words, 2 inside words, 1 ignoring white space, 0 none.

    >>> standing("A cat in a category.", "cat")
    (3, [(2, 5)])
    """
    exact = [(start, start + len(quote)) for start in occurrences(text, quote)]
    whole = [(start, end) for start, end in exact if not inside_word(text, start) and not inside_word(text, end)]
    if whole or exact:
        return (3, whole) if whole else (2, exact)
    loose = loose_occurrences(text, quote)
    return int(bool(loose)), loose
