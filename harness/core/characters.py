"""Escapes characters unsafe in a terminal, prompt or file: control and format characters, lone surrogates."""

import re
import unicodedata
from typing import Any

_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_KEPT = {"\n", "\t", "\u200d"}  # the zero-width joiner holds emoji together
_SURROGATE = re.compile("[\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with invisible and control characters written as ⟨U+XXXX⟩; line ends are kept.

    >>> visible("red: \\x1b[31m")
    'red: ⟨U+001B⟩[31m'
    """
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(map(_shown, text.replace("\r\n", "\n")))


def in_one_line(text: str) -> str:
    """The text made `visible`, with line ends and runs of white space replaced by one space."""
    return visible(" ".join(text.split()))


def _shown(character: str) -> str:
    if character in _KEPT or unicodedata.category(character) not in _UNSEEN:
        return character
    return "\n" if character == "\r" else f"⟨U+{ord(character):04X}⟩"


def well_formed(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, which JSON can express but UTF-8 cannot encode."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def well_formed_json(value: Any) -> Any:
    """A JSON value with `well_formed` applied to all its strings and keys."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, list):
        return [well_formed_json(inner) for inner in value]
    if isinstance(value, dict):
        return {well_formed(key): well_formed_json(inner) for key, inner in value.items()}
    return value
