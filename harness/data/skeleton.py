"""The skeleton of a text: what is left of it when other systems have changed white space, Unicode form or Markdown."""

import unicodedata
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.core.records import Ints

_DROPPED = frozenset("*_`~#>|\\[]\"'")
"""Marks of Markdown and quotation marks, which are left out of a skeleton."""

_DROPPED_KINDS = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf", "Pd", "Pi", "Pf"})
"""White space, control and format characters, hyphens and dashes, opening and closing quotation marks."""


class Skeleton(NamedTuple):
    """The letters of a text, and the offset in the text that each is from, (letters,)."""

    letters: str
    offsets: Ints

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The span of the text from letter `start` to before letter `end`, which must be after it."""
        # Marks on one base letter may be in another order than in the text.
        return int(self.offsets[start:end].min()), int(self.offsets[start:end].max()) + 1


def skeleton(text: str) -> Skeleton:
    """Letters, digits and punctuation of a text, case-folded and in the Unicode form NFKD; nothing else.

    Left out are white space, hyphens and dashes, quotation marks, the marks of Markdown, and invisible characters, such
    as soft hyphens.

    >>> skeleton("**Salt-\\nWater**, ½").letters
    'saltwater,1⁄2'
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    present, kind = np.unique(codes, return_inverse=True)
    forms = [_form(chr(code)) for code in present.tolist()]
    lengths = np.array([len(form) for form in forms], np.int64)
    counts = lengths[kind]
    offsets = np.repeat(np.arange(len(codes)), counts)
    # The letters of character i are those of its form: from where the form begins, one after another.
    begins = np.repeat((np.cumsum(lengths) - lengths)[kind] - (np.cumsum(counts) - counts), counts)
    flat = np.frombuffer("".join(forms).encode("utf-32-le", "surrogatepass"), np.uint32)
    letters = flat[begins + np.arange(len(begins))] if len(begins) else flat[:0]
    if any(unicodedata.combining(letter) for form in forms for letter in form):
        order = _canonical_order(letters)
        letters, offsets = letters[order], offsets[order]
    return Skeleton(letters.tobytes().decode("utf-32-le", "surrogatepass"), offsets)


@lru_cache(maxsize=65_536)
def _form(character: str) -> str:
    """What a skeleton has of a character."""
    if character in _DROPPED or unicodedata.category(character) in _DROPPED_KINDS:
        return ""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    # Compatibility forms may have spaces: those of a spacing accent, for instance.
    return "".join(one for one in folded if one not in _DROPPED and unicodedata.category(one) not in _DROPPED_KINDS)


def _canonical_order(letters: npt.NDArray[np.uint32]) -> Ints:
    """The order of letters in which the marks after each base letter are sorted by their combining class."""
    classes = np.array([unicodedata.combining(chr(code)) for code in letters.tolist()], np.int64)
    bases = np.cumsum(classes == 0)
    return np.lexsort((classes, bases))
