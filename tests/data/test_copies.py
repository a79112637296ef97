"""Copies of evidence: all quotes in one pass find what searching for each of them alone does."""

from hypothesis import example, given
from hypothesis import strategies as st

from harness.core.records import Document, Span
from harness.data.copies import SHORTEST_COPY, copies_of
from harness.data.quotes import inside_word, occurrences

TEXTS = st.text("ab é.\n", max_size=120)


def one_by_one(quote: str, documents: list[Document]) -> list[Span]:
    """All places of one quote, document by document."""
    if len(quote) < SHORTEST_COPY:
        return []
    spans = ((doc, Span(doc.id, at, at + len(quote))) for doc in documents for at in occurrences(doc.text, quote))
    return [
        span for doc, span in spans if not inside_word(doc.text, span.start) and not inside_word(doc.text, span.end)
    ]


@given(st.lists(TEXTS, min_size=1, max_size=5), st.data())
@example(["a " * 60], None)  # occurrences that overlap each other
def test_all_quotes_at_once(texts: list[str], data: st.DataObject | None) -> None:
    """Quotes are cut out of the texts, so that many occur, some inside others and overlapping themselves."""
    documents = [Document(str(at), text) for at, text in enumerate(texts)]
    quotes = ["a " * 12, "a a a a a a a a a a a a"]
    for text in texts if data else ():
        start = data.draw(st.integers(0, len(text))) if data else 0
        quotes.append(text[start : start + 25])
        quotes.append(text[start : start + 40])
    found = copies_of(quotes, documents)
    for quote in quotes:
        assert found.get(quote, []) == one_by_one(quote, documents)


def test_only_long_quotes_have_copies() -> None:
    """A quote of 19 characters has none, one of 20 has."""
    documents = [Document("a", "x" * 19 + " " + "y" * 20)]
    assert copies_of(["x" * 19, "y" * 20], documents) == {"y" * 20: [Span("a", 20, 40)]}
