"""Characters that look like ASCII characters, from Unicode's table of confusables."""

import unicodedata
from functools import lru_cache

_LEFT = ("LESS-THAN", "LEFT-POINTING", "LEFT ANGLE", "LEFT DOUBLE ANGLE", "LEFT ARROWHEAD", "LEFT-POINTING ANGLE")
_RIGHT = ("GREATER-THAN", "RIGHT-POINTING", "RIGHT ANGLE", "RIGHT DOUBLE ANGLE", "RIGHT ARROWHEAD")
_SYMBOLS = ((0xAB, 0xBC), (0x2C2, 0x2C4), (0x2030, 0x2050), (0x2200, 0x2400), (0x2768, 0x2776), (0x27C0, 0x2800))
_MORE_SYMBOLS = ((0x2980, 0x2AFF), (0x2E00, 0x2E60), (0x3008, 0x300C), (0xFE30, 0xFE70), (0xFF00, 0xFFF0))


@lru_cache(maxsize=1)
def skeletons() -> dict[int, str]:
    """The ASCII character that each non-ASCII character is confusable with, as a table for `str.translate`.

    From the data of Unicode Technical Standard 39, section 4. Added are characters whose Unicode names identify
    them as less-than or greater-than signs, angle brackets or angle quotation marks; double ones map to `<<` or `>>`.
    """
    from confusable_homoglyphs.confusables import confusables_data

    found: dict[int, str] = {}
    for character, alike in confusables_data.items():
        if len(character) == 1 and not character.isascii():
            plain = [one["c"] for one in alike if len(one["c"]) == 1 and one["c"].isascii() and one["c"].isprintable()]
            if plain:
                found[ord(character)] = min(plain, key=lambda char: (not char.isalnum(), char))
    for low, high in (*_SYMBOLS, *_MORE_SYMBOLS):
        for code in range(low, high):
            bracket = _bracket(unicodedata.name(chr(code), ""))
            if bracket:
                found[code] = bracket
    return found


def _bracket(name: str) -> str:
    double = 2 if "DOUBLE" in name or "MUCH" in name else 1
    if "TRIANGLE" in name or "POINTING INDEX" in name or "EQUAL" in name:
        return ""
    if any(part in name for part in _LEFT):
        return "<" * double
    return ">" * double if any(part in name for part in _RIGHT) else ""


def folded_to_ascii(text: str) -> str:
    """The text without accents and with each look-alike character replaced by the ASCII character it resembles."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKD", text).translate(_letters())


def without_format_characters(text: str) -> str:
    """The text without invisible format characters (category Cf), such as zero-width spaces and soft hyphens."""
    return text if text.isascii() else text.translate(_format())


@lru_cache(maxsize=1)
def _letters() -> dict[int, str]:
    combining = {code: "" for code in range(0x300, 0x20000) if unicodedata.combining(chr(code))}
    return combining | skeletons()


@lru_cache(maxsize=1)
def _format() -> dict[int, str]:
    codes = (*range(0x80, 0x20000), *range(0xE0000, 0xE0100))
    return {code: "" for code in codes if unicodedata.category(chr(code)) == "Cf"}
