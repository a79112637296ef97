"""Where in a document the pieces stand that a splitter gave as text."""

from collections.abc import Sequence

from harness.core.errors import ConfigError
from harness.core.records import Spans

_LONGEST_SEPARATOR = 40
"""Characters that may be left out between two pieces: separators, not text."""


def aligned(text: str, pieces: Sequence[str], where: str) -> Spans:
    """The span of each piece, in order; raises ConfigError where a piece is not in the text or could be in two places.

    White space apart, pieces are a walk through the text: each begins after the one before it begins, ends after it
    ends, and leaves out no more than a separator in between. A search from the front would find the first of several
    copies, which for texts that repeat themselves is often the wrong one.
    """
    if not all(isinstance(piece, str) for piece in pieces):
        raise ConfigError(f"{where}: expected pieces of text, got {type(pieces[0]).__name__}")
    places = [at for at, sign in enumerate(text) if not sign.isspace()]
    bare = "".join(text[at] for at in places)
    parts = [part for part in ("".join(piece.split()) for piece in pieces) if part]
    begins = _walk(bare, parts, where)
    return [(places[begin], places[begin + len(part) - 1] + 1) for begin, part in zip(begins, parts, strict=True)]


def _walk(text: str, parts: Sequence[str], where: str) -> list[int]:
    """Where each part begins in a text, neither of which holds white space."""
    begins: list[int] = []
    if "".join(parts) == text:
        # Nothing is left out and nothing repeated: each part begins where the one before it ends.
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
    """Where a part begins: from `after` on, and such that it ends beyond `reached`."""
    found: list[int] = []
    begin = text.find(part, max(after, reached - len(part) + 1))
    while 0 <= begin <= reached + _LONGEST_SEPARATOR:
        found.append(begin)
        begin = text.find(part, begin + 1)
    if not found:
        raise ConfigError(f"{where} does not follow in the document; this splitter changes text, so it has no offsets")
    if len(found) > 1:
        raise ConfigError(
            f"{where} could stand in two places; let it overlap less and keep separators, or use a chunker of ours"
        )
    return found[0]
