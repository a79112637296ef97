"""Letters and signs that look like others, as Unicode's own table of confusable characters has them."""

import unicodedata
from functools import lru_cache

_ANGLES = ("LESS-THAN", "LEFT-POINTING", "LEFT ANGLE", "LEFT DOUBLE ANGLE", "LEFT ARROWHEAD", "LEFT-POINTING ANGLE")
_RIGHT = ("GREATER-THAN", "RIGHT-POINTING", "RIGHT ANGLE", "RIGHT DOUBLE ANGLE", "RIGHT ARROWHEAD")
_SIGNS = ((0xAB, 0xBC), (0x2C2, 0x2C4), (0x2030, 0x2050), (0x2200, 0x2400), (0x2768, 0x2776), (0x27C0, 0x2800))
_MORE_SIGNS = ((0x2980, 0x2AFF), (0x2E00, 0x2E60), (0x3008, 0x300C), (0xFE30, 0xFE70), (0xFF00, 0xFFF0))


@lru_cache(maxsize=1)
def skeletons() -> dict[int, str]:
    """The ASCII letter, digit or sign that each character outside ASCII is confusable with, for `str.translate`.

    From the data of Unicode Technical Standard 39, section 4; to them come all brackets whose names say that they are
    less-than or greater-than signs, angle brackets or angle quotation marks, `<<` for the double ones.
    """
    from confusable_homoglyphs.confusables import confusables_data

    found: dict[int, str] = {}
    for character, alike in confusables_data.items():
        if len(character) == 1 and not character.isascii():
            plain = [one["c"] for one in alike if len(one["c"]) == 1 and one["c"].isascii() and one["c"].isprintable()]
            if plain:
                found[ord(character)] = min(plain, key=lambda sign: (not sign.isalnum(), sign))
    for low, high in (*_SIGNS, *_MORE_SIGNS):
        for code in range(low, high):
            sign = _bracket(unicodedata.name(chr(code), ""))
            if sign:
                found[code] = sign
    return found


def _bracket(name: str) -> str:
    double = 2 if "DOUBLE" in name or "MUCH" in name else 1
    if "TRIANGLE" in name or "POINTING INDEX" in name or "EQUAL" in name:
        return ""
    if any(part in name for part in _ANGLES):
        return "<" * double
    return ">" * double if any(part in name for part in _RIGHT) else ""


def folded_to_ascii(text: str) -> str:
    """The text as a reader would take it for Latin letters: accents off, and each look-alike as what it looks like."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKD", text).translate(_letters())


def without_format_characters(text: str) -> str:
    """The text without what nobody sees: zero-width spaces, soft hyphens, marks of direction, tags."""
    return text if text.isascii() else text.translate(_format())


@lru_cache(maxsize=1)
def _letters() -> dict[int, str]:
    combining = {code: "" for code in range(0x300, 0x20000) if unicodedata.combining(chr(code))}
    return combining | skeletons()


@lru_cache(maxsize=1)
def _format() -> dict[int, str]:
    codes = (*range(0x80, 0x20000), *range(0xE0000, 0xE0100))
    return {code: "" for code in codes if unicodedata.category(chr(code)) == "Cf"}
