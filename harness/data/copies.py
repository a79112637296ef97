"""Verbatim copies of evidence: all places in the corpus where a quote occurs, found in one pass over the corpus."""

from collections.abc import Iterable

from harness.core.records import Document, Span
from harness.data.quotes import inside_word

SHORTEST_COPY = 20
"""Characters; copies of shorter quotes do not count: '20 minutes' in another document is not evidence."""


def copies_of(quotes: Iterable[str], documents: Iterable[Document]) -> dict[str, list[Span]]:
    """All places of each quote as whole words, in corpus order, including the original.

    A quote shorter than `SHORTEST_COPY` has none. All quotes are searched for at once: Aho & Corasick, Efficient string
    matching, 1975.
    """
    found: dict[str, list[Span]] = {quote: [] for quote in quotes if len(quote) >= SHORTEST_COPY}
    if not found:
        return found
    from ahocorasick_rs import AhoCorasick

    wanted = list(found)
    search = AhoCorasick(wanted).find_matches_as_indexes
    for doc in documents:
        for number, start, end in search(doc.text, overlapping=True):
            if not inside_word(doc.text, start) and not inside_word(doc.text, end):
                found[wanted[number]].append(Span(doc.id, start, end))
    return found
