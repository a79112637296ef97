"""A folder of question files: tables, JSON, YAML, or texts with YAML at their beginning."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from harness.core.errors import DataError
from harness.core.strict_yaml import front_matter, load_yaml
from harness.core.text_files import Line
from harness.data.importers.cells import USUAL
from harness.data.importers.dataset_writer import DatasetWriter
from harness.data.importers.documents_of import add_corpus
from harness.data.importers.options import Options
from harness.data.importers.source import Row, Source
from harness.data.importers.tables import add_queries

_TABLES = (".csv", ".tsv", ".jsonl")
_TEXTS = (".md", ".txt")


def import_questions(source: Source, writer: DatasetWriter, options: Options) -> None:
    """Import a folder of question files about the documents of `corpus`.

    A `.json`, `.yaml`, `.md` or `.txt` file holds one question, whose id is the file's name without suffix, or a list
    of them (JSON and YAML); a `.csv`, `.tsv` or `.jsonl` file is a table. The body of a text is the question; YAML at
    its beginning gives the rest. The parts have the names of tables: `question`, `answer`, `evidence`, …
    """
    add_corpus(source, writer, options)
    rows = [row for path in _files(source) for row in _rows(source, path, options)]
    if not rows:
        raise DataError(f"{source.path}: contains no question file (.json, .yaml, .md, .txt, .csv, .tsv, .jsonl)")
    add_queries(writer, options.name, options.columns, rows)


def _files(source: Source) -> list[Path]:
    known = (*_TABLES, *_TEXTS, ".json", ".yaml", ".yml")
    files = [source.path] if source.path.is_file() else sorted(source.path.rglob("*"))
    return [path for path in files if path.is_file() and path.suffix in known and not path.name.startswith(".")]


def _rows(source: Source, path: Path, options: Options) -> Iterator[tuple[Line, Row]]:
    if path.suffix in _TABLES:
        yield from source.rows(path)
        return
    line = Line(path, 1)
    value: Any
    if path.suffix in _TEXTS:
        value = _text(line, source.whole_text(path))
    elif path.suffix == ".json":
        value = source.json(path)
    else:
        value = _yaml(line, source.whole_text(path))
    single = isinstance(value, dict)
    for number, record in enumerate([value] if single else value if isinstance(value, list) else [None]):
        where = line if single else Line(path, 1, f"[{number}]")
        if not isinstance(record, dict):
            raise where.fault(f"expected a question with its parts, or a list of them, got {record!r:.60}")
        if single and not any(key in record for key in (*USUAL["query.id"], options.columns.get("query.id"))):
            record = {"id": path.stem, **record}
        yield where, record


def _text(line: Line, content: str) -> dict[str, Any]:
    """The parts of a text: those of the YAML at its beginning, and the question, which is the rest."""
    head, question = front_matter(content)
    parts = _yaml(line, head) if head else {}
    if not isinstance(parts, dict):
        raise line.fault("the YAML at the beginning is no mapping of parts, such as `answer: …`")
    return {**parts, "question": question.strip()}


def _yaml(line: Line, content: str) -> Any:
    try:
        return load_yaml(content)
    except yaml.MarkedYAMLError as error:
        number = error.problem_mark.line + 1 if error.problem_mark else 1
        raise Line(line.path, number).fault(f"not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise line.fault(f"not valid YAML: {' '.join(str(error).split())}") from None
