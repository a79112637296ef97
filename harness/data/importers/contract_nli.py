"""ContractNLI files: contracts, and hypotheses about them with the spans that decide each."""

import re
from typing import Any

from harness.core.text_files import Line
from harness.data.importers.dataset_writer import DatasetWriter, NewQuery, span
from harness.data.importers.fields import list_of, object_of, text_of, whole_number
from harness.data.importers.options import Options
from harness.data.importers.source import Source

_LONGEST_TITLE = 100


def import_contract_nli(source: Source, writer: DatasetWriter, options: Options) -> None:
    """Import a ContractNLI file: each pair of contract and hypothesis is a query, without evidence if not mentioned.

    The same hypotheses are asked about every contract, so a query begins with the title of its contract.
    """
    path = source.one("the ContractNLI file", "*.json")
    place = Line(path, 1, "(top)")
    content = object_of(place, source.json(path), "the file")
    labels = object_of(place, content.get("labels"), "labels")
    hypotheses = {
        name: text_of(Line(path, 1, f"labels.{name}"), object_of(place, one, name), "hypothesis")
        for name, one in labels.items()
    }
    documents = [
        (Line(path, 1, f"documents[{at}]"), one) for at, one in enumerate(list_of(place, content, "documents"))
    ]
    contracts = [(line, object_of(line, one, "document")) for line, one in documents]
    titles = _titles(contracts)
    for (line, contract), title in zip(contracts, titles, strict=True):
        metadata = {key: contract[key] for key in ("file_name", "document_type", "url") if contract.get(key)}
        writer.document(line, _name(line, contract), text_of(line, contract, "text"), title, metadata)
    for (line, contract), title in zip(contracts, titles, strict=True):
        _write(writer, options.name, line, contract, title, hypotheses)


def _name(line: Line, contract: dict[str, Any]) -> str:
    return f"contract-{whole_number(line, contract.get('id'), 'id')}"


def _titles(contracts: list[tuple[Line, dict[str, Any]]]) -> list[str]:
    """The first line of each contract; the contract's name is appended if several contracts begin alike."""
    texts = [text_of(line, contract, "text") for line, contract in contracts]
    first = [next((part.strip() for part in text.splitlines() if part.strip()), "")[:_LONGEST_TITLE] for text in texts]
    alike = [" ".join(re.findall(r"\w+", title.lower())) for title in first]
    named = zip(first, alike, (_name(line, contract) for line, contract in contracts), strict=True)
    return [title if alike.count(words) == 1 else f"{title} ({name})" for title, words, name in named]


def _write(
    writer: DatasetWriter, queries: str, line: Line, contract: dict[str, Any], title: str, hypotheses: dict[str, str]
) -> None:
    name, text = _name(line, contract), text_of(line, contract, "text")
    spans = [_span(line, f"spans[{at}]", one) for at, one in enumerate(list_of(line, contract, "spans"))]
    sets = list_of(line, contract, "annotation_sets")
    if len(sets) != 1:
        raise line.fault(f"annotation_sets: expected one, got {len(sets)}")
    annotations = object_of(line, object_of(line, sets[0], "annotation_sets[0]").get("annotations"), "annotations")
    for key, written in annotations.items():
        where = f"annotations.{key}"
        if key not in hypotheses:
            raise line.fault(f"{where}: no hypothesis of that name in labels")
        annotation = object_of(line, written, where)
        choice = text_of(line, annotation, "choice")
        numbers = [whole_number(line, at, f"{where}.spans") for at in list_of(line, annotation, "spans")]
        if not all(0 <= at < len(spans) for at in numbers):
            raise line.fault(f"{where}.spans: the contract has spans 0 to {len(spans) - 1}, got {numbers}")
        places = [spans[at] for at in dict.fromkeys(numbers)]
        evidence = [span(name, start, end, text[start:end]) for start, end in places]
        writer.counts.add("pairs with evidence" if evidence else "pairs without evidence")
        record = {"hypothesis": key, "choice": choice, "type": choice.lower()}
        asked = f"{title}: {hypotheses[key]}"
        writer.query(line, queries, NewQuery(f"{name}-{key}", asked, evidence, metadata=record))


def _span(line: Line, where: str, value: Any) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise line.fault(f"{where}: expected start and end, got {value!r:.60}")
    start, end = (whole_number(line, one, where) for one in value)
    return start, end
