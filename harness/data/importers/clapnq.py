"""CLAP-NQ: questions with the sentences of a passage that answer them, or with ids of passages."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.core.errors import DataError
from harness.core.text_files import Line
from harness.data.importers.dataset_writer import DatasetWriter, NewQuery, free_name, span
from harness.data.importers.fields import id_of, list_of, object_of, text_of
from harness.data.importers.options import Options
from harness.data.importers.source import Row, Source
from harness.data.quotes import standing


def import_clapnq(source: Source, writer: DatasetWriter, options: Options) -> None:
    """Import annotated files (`.jsonl`), or `passages.tsv` with files of questions (`question_*.tsv`).

    In annotated files, each sentence that the first annotator with an answer selected is an item of evidence; in the
    others, each passage listed. Questions without an answer have no evidence. Raises DataError with the line.
    """
    if source.path.is_dir() and source.all("passages.tsv"):
        _import_passages(source, writer, options)
        return
    files = [source.path] if source.path.is_file() else source.all("*.jsonl")
    if not files:
        raise DataError(f"{source.path}: contains neither annotated questions (.jsonl) nor passages.tsv")
    rows = [row for path in files for row in source.json_lines(path)]
    known: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    for line, row in rows:
        for title, text in _passages(line, row):
            if (title, text) not in known:
                known[title, text] = free_name(title, taken)
                writer.document(line, known[title, text], text, title)
    for line, row in rows:
        answer, sentences = _answer(line, row)
        passages = [(known[title, text], text) for title, text in _passages(line, row)]
        evidence = [_sentence(line, passages, sentence) for sentence in dict.fromkeys(sentences)]
        name, text = id_of(line, row, "id"), text_of(line, row, "input")
        writer.query(line, options.name, NewQuery(name, text, evidence, answer or None))
        writer.counts.add("selected sentences" if evidence else "questions without an answer", max(1, len(evidence)))


def _passages(line: Line, row: Row) -> list[tuple[str, str]]:
    records = [object_of(line, one, f"passages[{at}]") for at, one in enumerate(list_of(line, row, "passages"))]
    return [(text_of(line, one, "title"), text_of(line, one, "text")) for one in records]


def _answer(line: Line, row: Row) -> tuple[str, Sequence[str]]:
    """The answer and the sentences of the first annotator who gave both."""
    for at, value in enumerate(list_of(line, row, "output")):
        record = object_of(line, value, f"output[{at}]")
        answer, sentences = text_of(line, record, "answer", ""), record.get("selected_sentences") or []
        if answer.strip() and sentences:
            if not all(isinstance(one, str) for one in sentences):
                raise line.fault(f"output[{at}].selected_sentences: expected texts, got {sentences!r:.60}")
            return answer, sentences
    return "", ()


def _sentence(line: Line, passages: Sequence[tuple[str, str]], sentence: str) -> dict[str, Any]:
    """The evidence of a selected sentence. Raises DataError if no passage of the question contains it."""
    quote = sentence.strip().removesuffix("&").strip()
    for name, text in passages:
        if places := standing(text, quote)[1]:
            start, end = places[0]
            return span(name, start, end, text[start:end])
    raise line.fault(f"selected_sentences: {quote!r:.60} does not occur in the passages")


def _import_passages(source: Source, writer: DatasetWriter, options: Options) -> None:
    for line, row in _table(source, source.file("passages.tsv")):
        writer.document(line, id_of(line, row, "id"), text_of(line, row, "text"), text_of(line, row, "title", ""))
    files = source.all("question_*.tsv")
    if not files:
        raise DataError(f"{source.path}: contains no question_*.tsv beside passages.tsv")
    for path in files:
        for line, row in _table(source, path):
            evidence = []
            for doc in text_of(line, row, "doc-id-list", "").replace(",", " ").split():
                if item := writer.judged(options.name, doc, 1):
                    evidence.append(item)
            answer = text_of(line, row, "answers", "").partition("::")[0]
            query = NewQuery(id_of(line, row, "id"), text_of(line, row, "question"), evidence, answer or None)
            writer.query(line, options.name, query)


def _table(source: Source, path: Path) -> Iterator[tuple[Line, Row]]:
    """The rows of a TSV file with quoted cells. Raises DataError for a pointer of Git LFS and for missing cells."""
    content = source.whole_text(path)
    if content.startswith("version https://git-lfs"):
        raise DataError(f"{path}: is a pointer of Git LFS, not the file; fetch it with `git lfs pull`")
    reader = csv.reader(content.splitlines(keepends=True), delimiter="\t")
    head = next(reader, [])
    for cells in reader:
        line = Line(path, reader.line_num)
        if len(cells) != len(head):
            raise line.fault(f"expected the columns {', '.join(head)}, got {len(cells)}")
        yield line, dict(zip(head, cells, strict=True))
