"""Strict parsing of documents and queries from lines of JSONL; every error names its file and line."""

import re
from typing import Any, NamedTuple

from harness.core.records import Document, Span
from harness.core.text_files import Line

_DOCUMENT_KEYS = {"id", "text", "title", "metadata"}
_QUERY_KEYS = {"id", "text", "evidence", "answer", "grade", "ignore", "irrelevant", "unjudged", "metadata"}
_EVIDENCE_KEYS = {"doc", "start", "end", "quote", "also", "grade", "absent"}
_SURROGATE = re.compile("[\ud800-\udfff]")


class Citation(NamedTuple):
    """What evidence cites: a span with its quote, or an entire document (no span), which may be `absent`."""

    doc: str
    span: Span | None = None
    quote: str | None = None
    absent: bool = False


class RawEvidence(NamedTuple):
    """An item of evidence as written: its equivalent places, and its grade."""

    places: tuple[Citation, ...]
    grade: float


class RawQuery(NamedTuple):
    """A query as written, before its evidence is compared with the corpus.

    `ignore` lists documents that are left out of its ranking; `irrelevant` ones were judged not relevant, `unjudged`
    ones were pooled for judging but not judged.
    """

    line: Line
    id: str
    text: str
    evidence: tuple[RawEvidence, ...]
    answer: str | None
    metadata: dict[str, Any]
    ignore: tuple[str, ...] = ()
    irrelevant: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()


def document(line: Line, value: dict[str, Any]) -> Document:
    """The document in one line. Raises DataError for unknown or missing keys and values of a wrong type."""
    _known(line, value, _DOCUMENT_KEYS)
    return Document(
        id=_identifier(line, value),
        text=_string(line, value, "text"),
        title=_string(line, value, "title", ""),
        metadata=_mapping(line, value),
    )


def query(line: Line, value: dict[str, Any]) -> RawQuery:
    """The query in one line; `grade` on the query is the default grade of its evidence.

    Raises DataError for unknown or missing keys, values of a wrong type, and evidence that contradicts itself.
    """
    _known(line, value, _QUERY_KEYS)
    written = value.get("evidence", [])
    if not isinstance(written, list):
        raise line.fault("evidence: expected a list")
    default = _grade(line, value, 1.0)
    items = tuple(_evidence(line, f"evidence[{at}]", item, default) for at, item in enumerate(written))
    first = [item.places[0] for item in items]
    for at, place in enumerate(first):
        if place in first[:at]:
            raise line.fault(f"evidence[{at}]: repeats evidence[{first.index(place)}]; list each item once")
    kinds = {place.span is None for item in items for place in item.places}
    if len(kinds) > 1:
        raise line.fault("evidence: spans and whole documents in one query; give offsets to all of them or to none")
    answer = value.get("answer")
    if answer is not None:
        answer = _string(line, value, "answer")
    name, text = _identifier(line, value), _string(line, value, "text")
    lists = [_documents(line, value, key) for key in ("ignore", "irrelevant", "unjudged")]
    needed = {place.doc for item in items for place in item.places if place.span is None}
    for key, docs in (("irrelevant", lists[1]), ("unjudged", lists[2])):
        both = next((doc for doc in docs if doc in needed), None)
        if both is not None:
            raise line.fault(f"{key}: '{both}' is also evidence; keep only one of the two")
    return RawQuery(line, name, text, items, answer, _mapping(line, value), *lists)


def _documents(line: Line, value: dict[str, Any], key: str) -> tuple[str, ...]:
    docs = value.get(key, [])
    if not isinstance(docs, list) or not all(isinstance(doc, str) for doc in docs):
        raise line.fault(f"{key}: expected a list of document ids")
    return tuple(docs)


def _evidence(line: Line, where: str, value: Any, default: float) -> RawEvidence:
    first = _place(line, where, value)
    also = value.get("also", [])
    if not isinstance(also, list):
        raise line.fault(f"{where}.also: expected a list of places")
    others = (_place(line, f"{where}.also[{at}]", item) for at, item in enumerate(also))
    return RawEvidence((first, *others), _grade(line, value, default))


def _place(line: Line, where: str, value: Any) -> Citation:
    if not isinstance(value, dict) or not isinstance(value.get("doc"), str):
        raise line.fault(f'{where}: expected {{"doc": ID}} or {{"doc": ID, "start": N, "end": N, "quote": TEXT}}')
    _known(line, value, _EVIDENCE_KEYS, where)
    ends: tuple[Any, Any] = (value.get("start"), value.get("end"))
    _string(line, value, "doc")
    if ends == (None, None):
        if value.get("quote") is not None:
            raise line.fault(f"{where}: a quote without start and end; give the offsets, or leave the quote out")
        absent = value.get("absent", False)
        if not isinstance(absent, bool):
            raise line.fault(f"{where}: absent: expected true or false, not {absent!r}")
        return Citation(value["doc"], absent=absent)
    if "absent" in value:
        raise line.fault(f"{where}: absent: is for whole documents, not for spans")
    if not all(type(end) is int for end in ends):
        raise line.fault(f"{where}: start and end must both be whole numbers, got {ends[0]!r} and {ends[1]!r}")
    quote = value.get("quote")
    if quote is not None:
        quote = _string(line, value, "quote")
    return Citation(value["doc"], Span(value["doc"], *ends), quote)


def _grade(line: Line, value: dict[str, Any], default: float) -> float:
    grade = value.get("grade", default)
    if isinstance(grade, bool) or not isinstance(grade, int | float) or not 0 < grade <= 1e6:
        message = f"grade: expected a number above 0 and at most 1000000, got {grade!r:.40}"
        raise line.fault(f"{message}; leave out evidence that is not relevant")
    return float(grade)


def _known(line: Line, value: dict[str, Any], keys: set[str], where: str = "") -> None:
    for key in value:
        if key not in keys:
            place = f"{where}: " if where else ""
            raise line.fault(
                f"{place}unknown key '{key}'. Keys: {', '.join(sorted(keys))}; anything else belongs in metadata"
            )


def _identifier(line: Line, value: dict[str, Any]) -> str:
    identifier = _string(line, value, "id")
    if not identifier.strip():
        raise line.fault("id: is empty")
    return identifier


def _string(line: Line, value: dict[str, Any], key: str, default: str | None = None) -> str:
    text = value.get(key, default)
    if not isinstance(text, str):
        got = "is missing" if key not in value else f"expected text, not {text!r}"
        raise line.fault(f"{key}: {got}")
    broken = _SURROGATE.search(text)
    if broken:
        raise line.fault(
            f"{key}: contains half a surrogate pair, U+{ord(broken[0]):04X}, at character {broken.start()}; remove it"
        )
    return text


def _mapping(line: Line, value: dict[str, Any]) -> dict[str, Any]:
    metadata = value.get("metadata", {})
    if not isinstance(metadata, dict):
        raise line.fault("metadata: expected an object")
    return metadata
