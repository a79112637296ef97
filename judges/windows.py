"""Splits long texts into pieces that fit into a call, so that no text is silently truncated."""

from collections.abc import Sequence

CALL = 72_000
"""Maximum characters of passages per call, about 24,000 tokens at most."""


def windows(text: str, size: int = CALL) -> list[str]:
    """Split a text into pieces of at most `size` characters, after white space if there is any in the last tenth."""
    pieces = []
    while len(text) > size:
        at = max(text.rfind(space, size - size // 10, size) for space in (" ", "\n")) + 1 or size
        pieces.append(text[:at])
        text = text[at:]
    return [*pieces, text]


def packed(texts: Sequence[str], limit: int, size: int = CALL) -> list[tuple[str, ...]]:
    """Group texts in order, at most `limit` texts and `size` characters per group; a longer text is grouped alone."""
    groups: list[tuple[str, ...]] = []
    group: list[str] = []
    length = 0
    for text in texts:
        if group and (len(group) == limit or length + len(text) > size):
            groups.append(tuple(group))
            group, length = [], 0
        group.append(text)
        length += len(text)
    return [*groups, tuple(group)] if group else groups
