"""Find the offsets of the pieces that a splitter returned as text."""

from collections.abc import Sequence

from harness.core.errors import ConfigError
from harness.core.records import Spans

_LONGEST_SEPARATOR = 40
"""The maximum number of characters missing between two pieces: enough for a separator, too few for text."""


def aligned(text: str, pieces: Sequence[str], where: str) -> Spans:
    """The span of each piece, in order. Raises ConfigError if a piece is not in the text or could be in two places.

    White space is ignored. Each piece must begin after the previous one begins and end after it ends, with no more
    than a separator missing in between. A plain search from the start would find the first of several copies, which
    in repetitive text is often the wrong one.
    """
    if not all(isinstance(piece, str) for piece in pieces):
        raise ConfigError(f"{where}: expected pieces of text, got {type(pieces[0]).__name__}")
    places = [at for at, character in enumerate(text) if not character.isspace()]
    bare = "".join(text[at] for at in places)
    parts = [part for part in ("".join(piece.split()) for piece in pieces) if part]
    begins = _walk(bare, parts, where)
    return [(places[begin], places[begin + len(part) - 1] + 1) for begin, part in zip(begins, parts, strict=True)]


def _walk(text: str, parts: Sequence[str], where: str) -> list[int]:
    """The start of each part in a text; neither contains white space."""
    begins: list[int] = []
    if "".join(parts) == text:
        # No text is missing or repeated: each part begins where the previous one ends.
        at = 0
        for part in parts:
            begins.append(at)
            at += len(part)
        return begins
    after, reached = 0, 0
    for number, part in enumerate(parts, 1):
        begin = _only_place(text, part, after, reached, f"{where}: piece {number} {part[:40]!r}")
        begins.append(begin)
        after, reached = begin + 1, begin + len(part)
    if len(text) - reached > _LONGEST_SEPARATOR:
        raise ConfigError(f"{where}: the end of the text is in no piece: {text[reached:][:40]!r}")
    return begins


def _only_place(text: str, part: str, after: int, reached: int, where: str) -> int:
    """The start of a part, at `after` or later, such that it ends after `reached`."""
    found: list[int] = []
    begin = text.find(part, max(after, reached - len(part) + 1))
    while 0 <= begin <= reached + _LONGEST_SEPARATOR:
        found.append(begin)
        begin = text.find(part, begin + 1)
    if not found:
        raise ConfigError(f"{where} is not next in the document; this splitter changes the text, so it has no offsets")
    if len(found) > 1:
        raise ConfigError(
            f"{where} could be in two places; reduce the overlap and keep separators, or use a built-in chunker"
        )
    return found[0]
