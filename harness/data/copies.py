"""Verbatim copies of evidence: all places in the corpus where a quote occurs, found in one pass over the corpus."""

from collections.abc import Iterable

from harness.core.records import Document, Span
from harness.data.many_texts import ManyTexts
from harness.data.quotes import inside_word

SHORTEST_COPY = 20
"""Characters; copies of shorter quotes do not count: '20 minutes' in another document is not evidence."""


def copies_of(quotes: Iterable[str], documents: Iterable[Document]) -> dict[str, list[Span]]:
    """All places of each quote as whole words, in corpus order, including the original.

    A quote shorter than `SHORTEST_COPY` has none.
    """
    found: dict[str, list[Span]] = {quote: [] for quote in quotes if len(quote) >= SHORTEST_COPY}
    if not found:
        return found
    wanted = list(found)
    search = ManyTexts(wanted)
    for doc in documents:
        for number, start, end in search.places(doc.text):
            if not inside_word(doc.text, start) and not inside_word(doc.text, end):
                found[wanted[number]].append(Span(doc.id, start, end))
    return found
