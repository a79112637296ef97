"""What trials retrieved, as files for other tools: TREC runs, passages as JSON lines, and the judgments as qrels."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.core.errors import ConfigError
from harness.core.records import Query
from harness.evaluation.metrics.matching import Passage
from harness.running.launch_result import Launch
from harness.running.stages.locate import REPEATED, UNMAPPED
from harness.running.trial_outputs import TrialOutputs
from harness.storage.files import appearing, file_name


def export(launch: Launch, folder: Path) -> list[str]:
    """Write the rankings of a launch's trials, as they were scored, into a new folder; return the names of the files.

    For each trial, `<name>.trec` ranks documents by their best passage, and `<name>.jsonl` has the passages, as the
    retriever `passage_run` reads them. `qrels.txt` has the evidence as judgments of documents. Raises ConfigError if an
    id has white space, DataError if the folder exists.
    """
    session = launch.session
    assert session is not None
    outputs = {name: session.outputs(trial) for name, trial in zip(session.names, session.trials, strict=True)}
    with appearing(folder) as root:
        for name, one in outputs.items():
            rows = [one.selections.kept(at) for at in range(len(one.queries))]
            stem = _free(root, name)
            _write(root / f"{stem}.trec", _trec_lines(one.queries, rows, stem))
            _write(root / f"{stem}.jsonl", _passage_lines(one, rows))
        first = next(iter(outputs.values()))
        _write(root / "qrels.txt", _qrels(first.queries))
    return sorted(path.name for path in folder.iterdir())


def _free(root: Path, name: str) -> str:
    """A file name for a trial that no other trial has."""
    stem, number = file_name(name), 1
    while (root / f"{stem}.trec").exists():
        number += 1
        stem = f"{file_name(name)}-{number}"
    return stem


def _trec_lines(queries: Sequence[Query], rows: Sequence[Sequence[Passage]], run: str) -> Iterator[str]:
    """Lines of a TREC run. The score is the number of documents from here to the end: tools break ties differently."""
    for query, row in zip(queries, rows, strict=True):
        documents = list(dict.fromkeys(one.doc for one in row if not one.doc.startswith(REPEATED)))
        for rank, doc in enumerate(documents, 1):
            yield f"{_word(query.id)} Q0 {_word(doc)} {rank} {len(documents) + 1 - rank} {run}"


def _passage_lines(outputs: TrialOutputs, rows: Sequence[Sequence[Passage]]) -> Iterator[str]:
    text = outputs.work.text
    for query, row in zip(outputs.queries, rows, strict=True):
        passages: list[dict[str, Any]] = [
            {"text": text(one.doc, one.start, one.end)}
            | ({} if one.doc.startswith((UNMAPPED, REPEATED)) else {"doc": one.doc, "start": one.start, "end": one.end})
            for one in row
        ]
        yield json.dumps({"query": query.id, "passages": passages}, ensure_ascii=False)


def _qrels(queries: Sequence[Query]) -> Iterator[str]:
    """Lines of qrels: the greatest grade of a document's evidence, 0 for documents judged irrelevant."""
    for query in queries:
        grades = dict.fromkeys(query.irrelevant, 0.0)
        for item in query.evidence:
            for place in item.places:
                grades[place.doc] = max(grades.get(place.doc, 0.0), item.grade)
        yield from (f"{_word(query.id)} 0 {_word(doc)} {grade:g}" for doc, grade in grades.items())


def _word(name: str) -> str:
    """An id as a word of a TREC file. Raises ConfigError if it has white space."""
    if len(name.split()) != 1:
        raise ConfigError(f"export: the id {name!r} has white space, which files of TREC cannot hold")
    return name


def _write(path: Path, lines: Iterator[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
