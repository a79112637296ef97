"""Faults of evidence places, and the correct place of a quote if it can be determined."""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from harness.core.plurals import plural
from harness.core.records import Document, Span
from harness.data.quotes import inside_word, loose_occurrences, occurrences
from harness.data.raw_records import Citation, RawQuery

Code = Literal["unknown-document", "not-absent", "out-of-range", "shifted", "quote-differs"]


class Fault(NamedTuple):
    """Why a place cannot be used. `right` is `(start, end, quote)` if there is only one way to repair it."""

    code: Code
    what: str
    right: tuple[int, int, str] | None = None


class EvidenceFault(NamedTuple):
    """A fault and where it is: the index of the evidence item, and the index of the place within the item."""

    item: int
    place: int
    fault: Fault

    def __str__(self) -> str:
        where = f"evidence[{self.item}]" + (f".also[{self.place - 1}]" if self.place else "")
        return f"{where}: {self.fault.what}"


def evidence_faults(item: RawQuery, by_id: Mapping[str, Document]) -> list[EvidenceFault]:
    """All faults that make the evidence of a query unusable."""
    return [
        EvidenceFault(at, nth, fault)
        for at, evidence in enumerate(item.evidence)
        for nth, place in enumerate(evidence.places)
        if (fault := place_fault(place, by_id))
    ]


def unknown_ignored(item: RawQuery, by_id: Mapping[str, Document]) -> list[str]:
    """A message for each document that the query ignores but the corpus does not contain."""
    return [f"ignore: no document '{doc}' in the corpus" for doc in item.ignore if doc not in by_id]


def place_fault(place: Citation, by_id: Mapping[str, Document]) -> Fault | None:
    """The fault of one place; None if it can be used."""
    doc = by_id.get(place.doc)
    if place.absent:
        return Fault("not-absent", f"'{place.doc}' is marked absent but is in the corpus") if doc else None
    if doc is None:
        return Fault("unknown-document", f"no document '{place.doc}' in the corpus")
    return _span_fault(place.span, place.quote, doc.text) if place.span else None


def _span_fault(span: Span, quote: str | None, text: str) -> Fault | None:
    doc, start, end = span
    if not 0 <= start < end <= len(text):
        message = f"span {start}-{end} is not inside '{doc}', which has {plural(len(text), 'character')}"
        found = _moved(quote, start, text) if quote else None
        return Fault("out-of-range", f"{message}{found.what if found else ''}", found.right if found else None)
    if quote is None or text[start:end] == quote:
        return None
    found = _moved(quote, start, text)
    message = f"quote differs from '{doc}' at {start}-{end}{found.what}"
    return found._replace(what=message)


def _moved(quote: str, start: int, text: str) -> Fault:
    """The place of a quote that does not occur at `start`, as far as it can be determined."""
    starts = occurrences(text, quote)
    if not starts:
        return _reworded(quote, start, text)
    reasons = {at: why for at in starts if (why := _miscounted(text, at, start))}
    likely = next(iter(reasons)) if len(reasons) == 1 else min(starts, key=lambda at: abs(at - start))
    end = likely + len(quote)
    if likely == start:
        message = f"; the quote begins there and ends at {end}"
    else:
        way = "later" if likely > start else "earlier"
        message = f"; it occurs {abs(likely - start)} characters {way}, at {likely}-{end}"
    if likely in reasons:
        message += f": {reasons[likely]}"
    # A quote found only inside other words may have been meant for another place.
    words = not inside_word(text, likely) and not inside_word(text, end)
    sure = words and (len(starts) == 1 or len(reasons) == 1)
    if not words:
        message += ", inside a word"
    if len(starts) > 1 and len(reasons) != 1:
        message += f", and at {len(starts) - 1} other places"
    return Fault("shifted", message, (likely, end, quote) if sure else None)


def _reworded(quote: str, start: int, text: str) -> Fault:
    """The place of a quote if white space is ignored; of several places, the one closest to `start`."""
    found = loose_occurrences(text, quote)
    if not found:
        return Fault("quote-differs", "; the quote does not occur in the document")
    lo, hi = min(found, key=lambda span: abs(span[0] - start))
    message = f"; ignoring white space, it occurs at {lo}-{hi}"
    if len(found) > 1:
        message += f", and at {len(found) - 1} other places"
    here = not text[start:lo].strip() and not text[lo:start].strip()
    words = not inside_word(text, lo) and not inside_word(text, hi)
    sure = here or (words and len(found) == 1)
    return Fault("quote-differs", message, (lo, hi, text[lo:hi]) if sure else None)


def _miscounted(text: str, at: int, start: int) -> str:
    """The way of counting, other than in characters, by which `start` is the offset `at`; "" if there is none."""
    before = text[:at]
    for why, count in _COUNTS.items():
        if count(before) == start != at:
            return f"{start} is that offset {why}"
    return ""


_COUNTS: dict[str, Callable[[str], int]] = {
    "in UTF-8 bytes": lambda text: len(text.encode()),
    "in UTF-16 units": lambda text: len(text.encode("utf-16-le")) // 2,
    "if a line end counts as two (\\r\\n)": lambda text: len(text) + text.count("\n") - text.count("\r\n"),
    "if \\r\\n counts as one": lambda text: len(text) - text.count("\r\n"),
}
