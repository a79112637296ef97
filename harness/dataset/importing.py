"""Bringing other formats in: BEIR folders and the corpora of the Chroma chunking report."""

import contextlib
import csv
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

from harness.dataset.manifest import MANIFEST, Manifest, PinnedFile, write_manifest
from harness.dataset.records import Line, json_lines
from harness.errors import DataError

Importer = Callable[[Path, Path], "Imported"]


class Imported(dict[str, int]):
    """How much was imported, by kind; what could not be kept is counted too."""


def import_dataset(kind: str, source: Path, target: Path, *, name: str, licence: str = "") -> Imported:
    """Convert `source` into the data set folder `target`, whole or not at all. Raises DataError with file and line."""
    if target.is_file():
        raise DataError(f"{target}: is a file; name a folder")
    if target.exists() and any(target.iterdir()):
        raise DataError(f"{target}: already holds files; name another folder or remove it")
    if not source.is_dir():
        raise DataError(f"{source}: no such folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=target.parent))
    try:
        (draft / "queries").mkdir()
        counts = IMPORTERS[kind](source, draft)
        sets = sorted((draft / "queries").glob("*.jsonl"))
        queries = {path.stem: PinnedFile(path, "", locked=path.stem == "test" and len(sets) > 1) for path in sets}
        write_manifest(
            Manifest(
                draft,
                name,
                PinnedFile(draft / "corpus.jsonl", ""),
                queries,
                f"Imported from {kind} format",
                licence,
                source.name,
            )
        )
        draft.chmod(0o755)
        if target.exists():
            target.rmdir()
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    assert (target / MANIFEST).is_file()
    return counts


def _write(path: Path, records: Iterator[dict[str, Any]]) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for record in records:
            count += 1
            try:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
            except UnicodeEncodeError:
                raise DataError(f"record '{record['id']}' holds half a surrogate pair; remove it") from None
    return count


@contextlib.contextmanager
def _csv_file(path: Path) -> Iterator[TextIO]:
    """An open CSV or TSV file; what cannot be read of it is a DataError."""
    csv.field_size_limit(2**31 - 1)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 (byte {error.start}); save the file as UTF-8") from None
    except csv.Error as error:
        raise DataError(f"{path}: {error}") from None


def _field(line: Line, value: dict[str, Any], key: str) -> str:
    if not isinstance(value.get(key), str):
        raise line.fault(f"{key}: expected text, got {value.get(key)!r}")
    return str(value[key])


def import_beir(source: Path, draft: Path) -> Imported:
    """`corpus.jsonl`, `queries.jsonl` and `qrels/*.tsv`; a title becomes the first paragraph of the text.

    Each qrels file is a query set of the queries it judges, in the order of `queries.jsonl`. Judgments of grade 0 or
    below say "not relevant" and are left out; judged documents that the corpus lacks are counted and left out.
    """
    known: set[str] = set()

    def documents() -> Iterator[dict[str, Any]]:
        for line, value in json_lines(source / "corpus.jsonl"):
            title, text = value.get("title") or "", _field(line, value, "text")
            if _field(line, value, "_id") in known:
                raise line.fault(f"_id '{value['_id']}' stands twice")
            known.add(value["_id"])
            yield {"id": value["_id"], "title": title, "text": f"{title}\n\n{text}" if title else text}

    counts = Imported(documents=_write(draft / "corpus.jsonl", documents()))
    texts: dict[str, str] = {}
    for line, value in json_lines(source / "queries.jsonl"):
        if _field(line, value, "_id") in texts:
            raise line.fault(f"_id '{value['_id']}' stands twice")
        texts[value["_id"]] = _field(line, value, "text")
    files = sorted((source / "qrels").glob("*.tsv"))
    if not files:
        raise DataError(f"{source / 'qrels'}: holds no .tsv file")
    for path in files:
        judged = _qrels(path, texts)
        absent = sum(doc not in known for golds in judged.values() for doc, _ in golds)
        records = (
            {"id": q, "text": text, "evidence": [{"doc": d, "grade": g} for d, g in judged[q] if g > 0 and d in known]}
            for q, text in texts.items()
            if q in judged
        )
        counts[f"{path.stem} queries"] = _write(draft / "queries" / f"{path.stem}.jsonl", records)
        counts[f"{path.stem} judgments"] = sum(len(golds) for golds in judged.values())
        if absent:
            counts[f"{path.stem} judgments of absent documents"] = absent
    return counts


def _qrels(path: Path, texts: dict[str, str]) -> dict[str, list[tuple[str, int]]]:
    judged: dict[str, list[tuple[str, int]]] = {}
    pairs: set[tuple[str, str]] = set()
    with _csv_file(path) as file:
        for number, row in enumerate(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE), 1):
            line = Line(path, number)
            if not row or (number == 1 and row[-1] == "score"):
                continue
            if len(row) != 3:
                raise line.fault(f"expected query, document and score separated by tabs, got {len(row)} columns")
            try:
                grade = int(row[2])
            except ValueError:
                raise line.fault(f"score: expected a whole number, got {row[2]!r}") from None
            if row[0] not in texts:
                raise line.fault(f"no query '{row[0]}' in queries.jsonl")
            if (row[0], row[1]) in pairs:
                raise line.fault(f"query '{row[0]}' judges document '{row[1]}' a second time")
            pairs.add((row[0], row[1]))
            judged.setdefault(row[0], []).append((row[1], grade))
    return judged


def import_chroma(source: Path, draft: Path) -> Imported:
    """`corpora/*.md` and `questions_df.csv`, whose `references` are character spans into one corpus each.

    All corpora become one data set (a document each); a question's `group` is left to its first reference.
    """
    texts: dict[str, str] = {}
    for path in sorted((source / "corpora").glob("*.md")):
        try:
            # newline="": universal newlines would shift every offset behind a \r\n.
            with path.open(encoding="utf-8", newline="") as file:
                texts[path.stem] = file.read()
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: not UTF-8 (byte {error.start})") from None
    if not texts:
        raise DataError(f"{source / 'corpora'}: holds no .md file")
    counts = Imported(
        documents=_write(draft / "corpus.jsonl", ({"id": k, "title": k, "text": v} for k, v in texts.items()))
    )
    questions = list(_questions(source / "questions_df.csv", texts))
    counts["validation queries"] = _write(draft / "queries" / "validation.jsonl", iter(questions))
    counts["references"] = sum(len(question["evidence"]) for question in questions)
    return counts


def _questions(path: Path, texts: dict[str, str]) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    numbers: dict[str, int] = {}
    with _csv_file(path) as file:
        rows = csv.DictReader(file)
        for row in rows:
            line = Line(path, rows.line_num)
            try:
                corpus, question, written = row["corpus_id"], row["question"], row["references"]
            except KeyError as error:
                raise line.fault(f"no column {error}; expected question, references, corpus_id") from None
            if corpus not in texts:
                raise line.fault(f"corpus_id: no file corpora/{corpus}.md")
            numbers[corpus] = numbers.get(corpus, 0) + 1
            evidence = [_reference(line, corpus, texts[corpus], reference) for reference in _references(line, written)]
            yield {
                "id": f"{corpus}-{numbers[corpus]:03d}",
                "text": question,
                "evidence": evidence,
                "metadata": {"corpus": corpus},
            }


def _references(line: Line, written: str) -> list[Any]:
    try:
        references = json.loads(written)
    except (ValueError, TypeError) as error:
        raise line.fault(f"references: not valid JSON: {error}") from None
    if not isinstance(references, list) or not references:
        raise line.fault("references: expected a list of spans")
    return references


def _reference(line: Line, corpus: str, text: str, reference: Any) -> dict[str, Any]:
    try:
        start, end, quote = int(reference["start_index"]), int(reference["end_index"]), reference["content"]
    except (KeyError, TypeError, ValueError):
        raise line.fault(f"references: expected content, start_index and end_index, got {reference!r:.80}") from None
    if text[start:end] != quote:
        raise line.fault(f"references: the text of '{corpus}' at {start}-{end} is not the quoted {quote!r:.60}")
    return {"doc": corpus, "start": start, "end": end, "quote": quote}


IMPORTERS: dict[str, Importer] = {"beir": import_beir, "chroma": import_chroma}
