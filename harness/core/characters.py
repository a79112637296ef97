"""Characters that must not reach a terminal, a prompt or a file as they are: control, format, half surrogate pairs."""

import re
import unicodedata
from typing import Any

_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_KEPT = {"\n", "\t", "\u200d"}  # the zero-width joiner holds emoji together
_SURROGATE = re.compile("[\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with everything written out that a reader could not see or a terminal would obey, line ends kept.

    >>> visible("red: \\x1b[31m")
    'red: ⟨U+001B⟩[31m'
    """
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(map(_shown, text.replace("\r\n", "\n")))


def in_one_line(text: str) -> str:
    """The text, visible, with line ends and runs of white space as one space."""
    return visible(" ".join(text.split()))


def _shown(character: str) -> str:
    if character in _KEPT or unicodedata.category(character) not in _UNSEEN:
        return character
    return "\n" if character == "\r" else f"⟨U+{ord(character):04X}⟩"


def well_formed(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair, which JSON can write and no file can hold."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def well_formed_json(value: Any) -> Any:
    """A JSON value with all its texts and keys well formed."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, list):
        return [well_formed_json(inner) for inner in value]
    if isinstance(value, dict):
        return {well_formed(key): well_formed_json(inner) for key, inner in value.items()}
    return value
