"""HotpotQA files: multi-hop questions with their passages and supporting sentences."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.core.errors import DataError
from harness.core.text_files import Line
from harness.data.importers.dataset_writer import DatasetWriter, NewQuery, free_name, span
from harness.data.importers.fields import list_of, object_of, text_of, whole_number
from harness.data.importers.options import Options
from harness.data.importers.source import Source


class Asked(NamedTuple):
    """A question with its passages as `(title, sentences)` and its facts as `(title, index of the sentence)`."""

    line: Line
    name: str
    text: str
    answer: str
    kind: str
    passages: list[tuple[str, list[str]]]
    facts: list[tuple[str, int]]


def import_hotpotqa(source: Source, writer: DatasetWriter, options: Options) -> None:
    """Import a HotpotQA file: all passages form one corpus; each supporting sentence is an evidence item."""
    path = source.file(options.queries[""]) if "" in options.queries else _questions(source)
    content = source.json(path)
    if not isinstance(content, list):
        raise DataError(f"{path}: expected a list of questions, got {type(content).__name__}")
    asked = [read_question(Line(path, 1, f"[{at}]"), one) for at, one in enumerate(content)]
    write_questions(writer, {options.name: asked})


def write_questions(writer: DatasetWriter, sets: Mapping[str, Sequence[Asked]]) -> None:
    """Add the passages of all sets, pooled, then their questions.

    A supporting fact that names a missing passage or sentence cannot be evidence: it is counted and left out, and so is
    a question without any other fact.
    """
    known: dict[tuple[str, tuple[str, ...]], str] = {}
    titles: set[str] = set()
    for question in (one for asked in sets.values() for one in asked):
        for title, sentences in question.passages:
            if (title, tuple(sentences)) not in known:
                name = free_name(title, titles)
                known[title, tuple(sentences)] = name
                writer.document(question.line, name, "".join(sentences), title)
    for queries, question in ((name, one) for name, asked in sets.items() for one in asked):
        _write(writer, queries, question, known)


def _write(writer: DatasetWriter, queries: str, question: Asked, known: dict[tuple[str, tuple[str, ...]], str]) -> None:
    passages = dict(reversed(question.passages))
    evidence = []
    for title, at in dict.fromkeys(question.facts):
        sentences = passages.get(title, [])
        text = sentences[at] if 0 <= at < len(sentences) else ""
        if not text.strip():
            writer.counts.add("supporting facts without a sentence, left out")
            continue
        start = sum(map(len, sentences[:at])) + len(text) - len(text.lstrip())
        bare = text.strip()
        evidence.append(span(known[title, tuple(sentences)], start, start + len(bare), bare))
    if not evidence:
        writer.counts.add("questions without a supporting sentence, left out")
        return
    writer.counts.add("supporting sentences", len(evidence))
    metadata = {"type": question.kind} if question.kind else {}
    query = NewQuery(question.name, question.text, evidence, question.answer, metadata)
    writer.query(question.line, queries, query)


def _questions(source: Source) -> Path:
    """The file with the questions; files with `corpus` in their name are ignored."""
    return source.one("the questions", "*.json", option="--queries", only=lambda path: "corpus" not in path.name)


def read_question(line: Line, written: Any) -> Asked:
    """A question in the form of HotpotQA. Raises DataError if it is malformed."""
    record = object_of(line, written, "question")
    passages = [_passage(line, f"context[{at}]", one) for at, one in enumerate(list_of(line, record, "context"))]
    facts = [
        _fact(line, f"supporting_facts[{n}]", one) for n, one in enumerate(list_of(line, record, "supporting_facts"))
    ]
    return Asked(
        line,
        text_of(line, record, "_id"),
        text_of(line, record, "question"),
        text_of(line, record, "answer", ""),
        text_of(line, record, "type", ""),
        passages,
        facts,
    )


def _passage(line: Line, where: str, value: Any) -> tuple[str, list[str]]:
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], list):
        title, sentences = value
        if all(isinstance(sentence, str) for sentence in sentences):
            return title, sentences
    raise line.fault(f"{where}: expected a title and its sentences, got {value!r:.60}")


def _fact(line: Line, where: str, value: Any) -> tuple[str, int]:
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], str):
        raise line.fault(f"{where}: expected a title and the number of a sentence, got {value!r:.60}")
    return value[0], whole_number(line, value[1], where)
