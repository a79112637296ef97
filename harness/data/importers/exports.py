"""Exports of data sets from LangSmith and Arize Phoenix: examples of inputs, outputs and metadata."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.core.errors import DataError
from harness.core.text_files import Line
from harness.data.importers.dataset_writer import DatasetWriter
from harness.data.importers.documents_of import add_corpus
from harness.data.importers.options import Options
from harness.data.importers.source import Row, Source
from harness.data.importers.tables import add_queries

_KINDS = ("*.csv", "*.jsonl", "*.json")
_INPUTS = ("inputs.", "input.", "inputs_", "input_")
_OUTPUTS = ("outputs.", "output.", "outputs_", "output_", "reference_outputs.", "reference_output.")
_QUESTIONS = ("question", "query", "input", "user_input", "prompt", "text", "messages")
_ANSWERS = ("answer", "reference", "expected_answer", "ground_truth", "output", "response", "content", "messages")
_IDS = ("id", "example_id", "external_id", "node_id")
_NESTED = ("inputs", "outputs", "input", "output", "metadata", "reference_outputs", "reference_output")
_UNUSED = ("dataset_id", "created_at", "modified_at", "source_run_id", "attachments", "attachment_urls", "runs")


def import_langsmith(source: Source, writer: DatasetWriter, options: Options) -> None:
    """Import an export of a LangSmith data set (CSV, JSONL, or JSON of examples); see `_import`."""
    _import(source, writer, options)


def import_phoenix(source: Source, writer: DatasetWriter, options: Options) -> None:
    """Import an export of a Phoenix data set (CSV, JSONL, or JSON of examples); see `_import`."""
    _import(source, writer, options)


def _import(source: Source, writer: DatasetWriter, options: Options) -> None:
    """Import examples as queries about the documents of `corpus`.

    The columns are those of the export: nested values become dotted columns such as `inputs.question`. The question
    and the answer are found by their usual names. What an application retrieved is no evidence, so evidence is used
    only if `columns` names its column. Raises DataError with the place.
    """
    add_corpus(source, writer, options)
    path = (
        source.file(options.queries[""])
        if "" in options.queries
        else source.one("the export", *_KINDS, option="--queries")
    )
    rows = list(_rows(source, path))
    if not rows:
        raise DataError(f"{path}: contains no example")
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    _require_examples(rows[0][0], names)
    columns = {**_columns(rows[0][0], names), **options.columns}
    add_queries(writer, options.name, columns, rows)


def _rows(source: Source, path: Path) -> Iterator[tuple[Line, Row]]:
    """The examples of a file, flat; those of a JSON object are in its list `examples`."""
    if path.suffix == ".json":
        content = source.json(path)
        examples = content.get("examples") if isinstance(content, dict) else content
        if not isinstance(examples, list):
            raise DataError(f"{path}: expected a list of examples, or an object with `examples`")
        records = ((Line(path, 1, f"[{at}]"), record) for at, record in enumerate(examples))
    else:
        records = ((line, record) for line, record in source.rows(path))
    for line, record in records:
        if not isinstance(record, dict):
            raise line.fault(f"expected an example, got {record!r:.60}")
        yield line, {key: _value(value) for key, value in _flat(record) if key not in _UNUSED}


def _flat(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in record.items():
        if key in _NESTED and isinstance(value, dict):
            yield from ((f"{key}.{name}", inner) for name, inner in _dotted(value))
        elif value is not None:
            yield key, value


def _dotted(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from ((f"{key}.{name}", part) for name, part in _dotted(inner))
        elif inner is not None:
            yield key, inner


def _value(value: Any) -> Any:
    """A cell: messages become the text of the last one, and a list written by Python (`['a', 'b']`) a list."""
    if isinstance(value, str) and value.startswith(("['", '["', "[{'")):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return value
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        texts = [one.get(key) for one in value for key in ("content", "page_content", "text") if one.get(key)]
        if len(texts) == len(value):
            return texts[-1] if all("role" in one or "type" in one for one in value) else texts
    return value


def _require_examples(line: Line, names: Sequence[str]) -> None:
    """Raise DataError for exports that do not hold examples of a data set."""
    if any(name.startswith(("attributes.", "context.span_id")) for name in names):
        message = "are spans: what an application retrieved, not what is relevant; export a data set instead"
        raise DataError(f"{line.path}: its records {message}")
    if "messages" in names and not any(name.startswith((*_INPUTS, *_OUTPUTS)) for name in names):
        raise DataError(f"{line.path}: is an export for fine-tuning, without ids; export the data set as CSV or JSONL")


def _columns(line: Line, names: Sequence[str]) -> dict[str, str]:
    """The columns of question, answer and id. Raises DataError if the question could be in several."""
    inputs, outputs = _without(names, _INPUTS), _without(names, _OUTPUTS)
    question = next((inputs[name] for name in _QUESTIONS if name in inputs), None)
    if question is None and len(inputs) == 1:
        (question,) = inputs.values()
    if question is None:
        question = next((name for name in _QUESTIONS if name in names), None)
    if question is None:
        listed = ", ".join(names)[:120]
        raise line.fault(f"no column for the question; name it with --map query.text=COLUMN; columns: {listed}")
    answer = next((outputs[name] for name in _ANSWERS if name in outputs), None)
    answer = answer or next((name for name in ("answer", "output") if name in names), None)
    known = next((name for name in _IDS if name in names), None)
    found = {"query.text": question, "query.answer": answer, "query.id": known}
    return {part: column for part, column in found.items() if column}


def _without(names: Sequence[str], prefixes: Sequence[str]) -> dict[str, str]:
    """The columns by their name without a prefix."""
    return {name.removeprefix(prefix): name for name in names for prefix in prefixes if name.startswith(prefix)}
