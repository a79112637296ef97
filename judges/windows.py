"""Long texts in pieces that fit a call: nothing is cut off unseen."""

from collections.abc import Sequence

CALL = 72_000
"""Characters of passages in one call, about 24,000 tokens at most."""


def windows(text: str, size: int = CALL) -> list[str]:
    """The text in pieces of at most `size` characters, cut behind white space where there is some near the end."""
    pieces = []
    while len(text) > size:
        at = max(text.rfind(sign, size - size // 10, size) for sign in (" ", "\n")) + 1 or size
        pieces.append(text[:at])
        text = text[at:]
    return [*pieces, text]


def packed(texts: Sequence[str], limit: int, size: int = CALL) -> list[tuple[str, ...]]:
    """The texts in groups of at most `limit` and `size` characters, in order."""
    groups: list[tuple[str, ...]] = []
    group: list[str] = []
    held = 0
    for text in texts:
        if group and (len(group) == limit or held + len(text) > size):
            groups.append(tuple(group))
            group, held = [], 0
        group.append(text)
        held += len(text)
    return [*groups, tuple(group)] if group else groups
