"""Searching for many texts at once, in one pass over each document."""

from collections.abc import Iterator, Sequence

_LONGEST = 1000
"""Characters of a text that the search is built of; the time to build it of a text that repeats itself is quadratic."""


class ManyTexts:
    """Distinct texts, none of them empty: Aho & Corasick, Efficient string matching, 1975."""

    def __init__(self, texts: Sequence[str]) -> None:
        from ahocorasick_rs import AhoCorasick

        self._by_beginning: dict[str, list[int]] = {}
        for number, text in enumerate(texts):
            self._by_beginning.setdefault(text[:_LONGEST], []).append(number)
        self._texts, self._beginnings = texts, list(self._by_beginning.values())
        self._search = AhoCorasick(list(self._by_beginning)).find_matches_as_indexes

    def places(self, document: str) -> Iterator[tuple[int, int, int]]:
        """Yield the number of a text, start and end, for all places of all texts in a document, also overlapping."""
        for beginning, start, _ in self._search(document, overlapping=True):
            for number in self._beginnings[beginning]:
                text = self._texts[number]
                if len(text) <= _LONGEST or document.startswith(text, start):
                    yield number, start, start + len(text)
