"""The ranking of another system, read from a TREC run file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.components.component import Positive
from harness.components.roles import Replay
from harness.core.errors import DataError
from harness.core.rankings import Rankings, Row
from harness.core.text_files import Line, is_comment, text_lines


@dataclass(frozen=True)
class TrecRun(Replay):
    """What another system retrieved: `run` names a TREC run file in the manifest of the data set (`runs:`).

    Lines of query, Q0, document, rank, score, name; further columns and lines that begin with # are left out. Ranked as
    trec_eval does: by score, taken as a 32-bit float, ties by document in descending order; the written rank does not
    count. A document is retrieved by its first chunk.
    """

    run: str
    depth: Positive = 1000

    def replay(self, path: Path, queries: Sequence[str], first: Mapping[str, int]) -> Rankings:
        scores = read_run(path)
        strangers = sorted({doc for query in queries for doc in scores.get(query, {})} - first.keys())
        if strangers:
            message = f"run '{self.run}' ranks {len(strangers)} documents without a chunk in the corpus"
            raise DataError(f"{path}: {message}, such as '{strangers[0]}'; its ranks would be wrong without them")
        if not scores.keys() & set(queries):
            message = f"run '{self.run}' ranks none of the {len(queries)} queries, but queries such as"
            raise DataError(f"{path}: {message} '{next(iter(scores), '')}'")
        return Rankings.of([self._row(scores.get(query, {}), first) for query in queries])

    def _row(self, scores: Mapping[str, float], first: Mapping[str, int]) -> Row:
        order = sorted(scores, key=lambda doc: (scores[doc], doc), reverse=True)[: self.depth]
        ids = np.array([first[doc] for doc in order], np.int64)
        return ids, np.array([scores[doc] for doc in order], np.float64)


def read_run(path: Path) -> dict[str, dict[str, float]]:
    """The scores of a run by query and document. Raises DataError at the first malformed line."""
    found: dict[str, dict[str, float]] = {}
    for line, text in text_lines(path):
        if is_comment(text):
            continue
        query, doc, score = run_line(line, text)
        scores = found.setdefault(query, {})
        if doc in scores:
            raise line.fault(f"query '{query}' ranks document '{doc}' a second time")
        scores[doc] = score
    return found


def run_line(line: Line, text: str) -> tuple[str, str, float]:
    """Query, document and score of one line of a run."""
    parts = text.split()
    if len(parts) < 6:
        raise line.fault(f"expected query, Q0, document, rank, score and name of the run, got {len(parts)} columns")
    try:
        score = float(np.float32(parts[4]))
    except ValueError:
        score = np.nan
    if not np.isfinite(score):
        raise line.fault(f"score: expected a number, got {parts[4]!r:.40}")
    return parts[0], parts[2], score
