"""The corpora of the Chroma chunking report: `corpora/*.md` and `questions_df.csv`."""

import json
from typing import Any

from harness.core.errors import DataError
from harness.core.text_files import Line, bare_name
from harness.data.importers.dataset_writer import DatasetWriter, NewQuery, span
from harness.data.importers.fields import text_of, whole_number
from harness.data.importers.options import Options
from harness.data.importers.source import Source


def import_chroma(source: Source, writer: DatasetWriter, options: Options) -> None:
    """Import the Chroma corpora, a document each; `references` are character spans, imported without correction."""
    paths = source.all("corpora/*.md")
    if not paths:
        raise DataError(f"{source.folder / 'corpora'}: contains no .md file")
    for path in paths:
        name = bare_name(path).removesuffix(".md")
        writer.document(Line(path, 1), name, source.whole_text(path), name)
    numbers: dict[str, int] = {}
    for line, row in source.rows(source.file("questions_df.csv")):
        corpus = text_of(line, row, "corpus_id")
        if corpus not in writer:
            raise line.fault(f"corpus_id: no file corpora/{corpus}.md")
        numbers[corpus] = numbers.get(corpus, 0) + 1
        evidence = [_reference(line, corpus, one) for one in _references(line, text_of(line, row, "references"))]
        distinct = [one for at, one in enumerate(evidence) if one not in evidence[:at]]
        writer.counts.add("references", len(evidence))
        if len(distinct) < len(evidence):
            writer.counts.add("references given twice for a question, counted once", len(evidence) - len(distinct))
        name, metadata = f"{corpus}-{numbers[corpus]:03d}", {"corpus": corpus}
        writer.query(line, options.name, NewQuery(name, text_of(line, row, "question"), distinct, metadata=metadata))


def _references(line: Line, written: str) -> list[Any]:
    try:
        references = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise line.fault(f"references: not valid JSON: {error}") from None
    if not isinstance(references, list) or not references:
        raise line.fault("references: expected a list of spans")
    return references


def _reference(line: Line, corpus: str, reference: Any) -> dict[str, Any]:
    if not isinstance(reference, dict) or not isinstance(reference.get("content"), str):
        raise line.fault(f"references: expected content, start_index and end_index, got {reference!r:.80}")
    start, end = (whole_number(line, reference.get(key), f"references: {key}") for key in ("start_index", "end_index"))
    return span(corpus, start, end, reference["content"])
