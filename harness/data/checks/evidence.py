"""Findings on evidence: faults that make it unusable, and spans that are usable but doubtful."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from harness.core.records import Document
from harness.data.checks.findings import Finding
from harness.data.evidence_faults import evidence_faults, unknown_ignored
from harness.data.quotes import inside_word, occurrences
from harness.data.raw_records import Citation, RawQuery


def evidence_findings(item: RawQuery, documents: Mapping[str, Document]) -> Iterator[Finding]:
    """All findings on the evidence of one query."""
    where, name = str(item.line), f"query '{item.id}'"
    for found in evidence_faults(item, documents):
        yield Finding(found.fault.code, where, f"{name}: {found}")
    for text in unknown_ignored(item, documents):
        yield Finding("unknown-document", where, f"{name}: {text}")
    for evidence in item.evidence:
        if all(place.doc in item.ignore for place in evidence.places):
            message = f"{name}: its evidence is in '{evidence.places[0].doc}', which it ignores"
            yield Finding("ignored-evidence", where, message)
        for place in evidence.places:
            if place.absent and place.doc not in documents:
                yield Finding("absent-document", where, f"{name}: '{place.doc}' is not in the corpus")
            elif place.doc in documents:
                yield from _span_findings(item, place, documents[place.doc].text)
    yield from _overlaps(item)


def _span_findings(item: RawQuery, place: Citation, text: str) -> Iterator[Finding]:
    if place.span is None or not 0 <= place.span.start < place.span.end <= len(text):
        return
    start, end = place.span.start, place.span.end
    quote = text[start:end]
    if place.quote is not None and place.quote != quote:
        return  # findings on a wrong place would mislead
    where, spot = str(item.line), f"query '{item.id}': '{place.doc}' {start}-{end}"
    if not quote.strip():
        yield Finding("blank-evidence", where, f"{spot} is only white space")
        return
    if quote != quote.strip():
        yield Finding("white-space-edge", where, f"{spot} begins or ends with white space")
    edges = [word for word, at in (("begins", start), ("ends", end)) if inside_word(text, at)]
    if edges:
        lines = [f"…{text[max(0, at - 12) : at]}|{text[at : at + 12]}…" for at in (start, end) if inside_word(text, at)]
        shown = " ".join(" and ".join(lines).split())
        yield Finding("inside-word", where, f"{spot} {' and '.join(edges)} inside a word: {shown}")
    count = len(occurrences(text, quote))
    if count > 1:
        yield Finding("ambiguous", where, f"{spot} occurs {count} times in the document: {quote!r:.60}")


def _overlaps(item: RawQuery) -> Iterator[Finding]:
    """Findings for items of one query that share text; equivalent places of one item may overlap."""
    spans = sorted(span for evidence in item.evidence if (span := evidence.places[0].span))
    for (doc, start, end), (other, begin, last) in pairwise(spans):
        if doc == other and begin < end:
            message = f"'{doc}' {start}-{end} and {begin}-{last} share {min(end, last) - begin} characters"
            yield Finding("overlapping-evidence", str(item.line), f"query '{item.id}': {message}")
