"""Text analysis for lexical matching: tokenization, stop words and stemming."""

import re
from functools import lru_cache
from typing import Any, Literal

Stemmer = Literal["none", "porter", "english"]
StopWords = Literal["none", "lucene"]

_WORD = re.compile(r"\w+")
_POSSESSIVE = re.compile(r"['’]s\b")
# Lucene's English stop set: the 33 words that its EnglishAnalyzer removes.
_LUCENE = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "but",
        "by",
        "for",
        "if",
        "in",
        "into",
        "is",
        "it",
        "no",
        "not",
        "of",
        "on",
        "or",
        "such",
        "that",
        "the",
        "their",
        "then",
        "there",
        "these",
        "they",
        "this",
        "to",
        "was",
        "will",
        "with",
    ]
)


class Analyzer:
    """Turns a text into lower-cased, stemmed Unicode words, as Lucene's EnglishAnalyzer does.

    Possessives and stop words are removed before stemming.
    """

    def __init__(self, stemmer: Stemmer, stop_words: StopWords) -> None:
        self._stop = _LUCENE if stop_words == "lucene" else frozenset()
        self._stem = _stemmer(stemmer) if stemmer != "none" else None

    def __call__(self, text: str) -> list[str]:
        lowered = _POSSESSIVE.sub("", text.lower())
        words = [word for word in _WORD.findall(lowered) if word not in self._stop]
        return self._stem.stemWords(words) if self._stem else words


@lru_cache(maxsize=4)
def _stemmer(name: str) -> Any:
    import Stemmer as Snowball

    return Snowball.Stemmer(name)
