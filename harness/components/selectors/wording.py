"""Word and phrase matching in queries. Only whole words match: "whenever" does not contain "when"."""

import re
from collections.abc import Sequence
from functools import lru_cache


def mentions(text: str, words: Sequence[str]) -> bool:
    """Whether the text contains one of the words or phrases, ignoring case.

    >>> mentions("Whenever it rains", ["when"]), mentions("WHEN is it?", ["when"])
    (False, True)
    """
    return bool(_pattern(tuple(words)).search(text))


@lru_cache(maxsize=64)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    choices = "|".join(r"\s+".join(map(re.escape, word.split())) for word in words)
    return re.compile(rf"(?i)(?<!\w)(?:{choices})(?!\w)")
