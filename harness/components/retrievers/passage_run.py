"""The passages of another system, read from a file of JSON lines."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.components.component import Positive
from harness.components.roles import PassageReplay, SystemAnswer, SystemHit
from harness.components.roles.passage_retriever import finite, rising
from harness.core.errors import DataError
from harness.core.records import Returned
from harness.core.text_files import Line, json_lines

_TYPES: Mapping[str, type] = {"text": str, "doc": str, "start": int, "end": int, "id": str}


@dataclass(frozen=True)
class PassageRun(PassageReplay):
    """The passages of another system: `run` names a file of JSON lines listed under `runs:` in the data set's manifest.

    A line is `{"query": "q1", "passages": [...]}`, best first. A passage is a text, or an object with `text`, `doc`
    (the id of its document), `start` and `end` (offsets in characters), `score` and `id`; `text`, or `doc` with
    offsets, is needed. `"ms"` says how long the client waited, `"error"` in place of the passages that the system did
    not answer.
    """

    run: str
    depth: Positive = 50

    def answers(self, path: Path, queries: Sequence[str]) -> list[SystemAnswer]:
        """Read the answers to `queries`; a query that is not in the file has none.

        Raises DataError if a line is malformed, or the file has none of the queries.
        """
        found = read_passages(path)
        if not found.keys() & set(queries):
            message = f"run '{self.run}' has none of the {len(queries)} queries, but queries such as"
            raise DataError(f"{path}: {message} '{next(iter(found), '')}'")
        missing = SystemAnswer(failure="the query is not in the run")
        return [found.get(query, missing) for query in queries]


def read_passages(path: Path) -> dict[str, SystemAnswer]:
    """Read the answers of a file by query. Raises DataError at the first malformed line."""
    found: dict[str, SystemAnswer] = {}
    for line, record in json_lines(path):
        query = record.get("query")
        if not isinstance(query, str):
            raise line.fault('expected {"query": "…", "passages": […]}, got no query')
        if query in found:
            raise line.fault(f"query '{query}' occurs a second time")
        found[query] = _answer(line, record)
    return found


def _answer(line: Line, record: Mapping[str, Any]) -> SystemAnswer:
    given = record.get("ms")
    ms = math.nan if given is None else finite(given)
    if ms is None or ms < 0:
        raise line.fault(f"ms: expected milliseconds, got {given!r:.40}")
    if record.get("error"):
        return SystemAnswer(failure=str(record["error"]), ms=ms)
    passages = record.get("passages")
    if not isinstance(passages, list):
        raise line.fault("passages: expected a list of passages, best first")
    hits = [_hit(line, f"passages[{at}]", one) for at, one in enumerate(passages)]
    _check_scores(hits, line)
    return SystemAnswer(tuple(hits), ms=ms)


def _hit(line: Line, where: str, given: Any) -> SystemHit:
    record = {"text": given} if isinstance(given, str) else given
    if not isinstance(record, dict):
        raise line.fault(f"{where}: expected a text, or an object with text, doc, start, end, score and id")
    values = {name: value for name, value in record.items() if value is not None}
    for name, kind in _TYPES.items():
        if name in values and (not isinstance(values[name], kind) or isinstance(values[name], bool)):
            expected = "a number of characters" if kind is int else "a text"
            raise line.fault(f"{where}.{name}: expected {expected}, got {values[name]!r:.40}")
    passage = Returned(values.get("text", ""), values.get("doc"), values.get("start"), values.get("end"))
    if not passage.text.strip() and None in passage[1:]:
        raise line.fault(f"{where}: needs its text, or doc, start and end")
    score = finite(values.get("score"))
    if score is None and values.get("score") is not None:
        raise line.fault(f"{where}.score: expected a number, got {values['score']!r:.40}")
    return SystemHit(passage, score, values.get("id", ""))


def _check_scores(hits: Sequence[SystemHit], line: Line) -> None:
    """Raise DataError unless all hits have scores that do not rise, or none has one."""
    if len({hit.score is None for hit in hits}) > 1:
        raise line.fault("passages: some have a score, others none")
    at = rising(hits)
    if at is not None:
        message = (
            f"the score rises from {hits[at - 1].score:g} to {hits[at].score:g}, but passages are listed best first"
        )
        raise line.fault(f"passages[{at}]: {message}; leave distances out")
