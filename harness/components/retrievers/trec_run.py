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
    """The rankings of another system: `run` names a TREC run file listed under `runs:` in the data set's manifest.

    Lines have query, Q0, document, rank, score and run name; further columns and lines that begin with # are ignored.
    Documents are ranked as in trec_eval: by score as a 32-bit float, ties by document id in descending order; the rank
    column is ignored. A document is represented by its first chunk.
    """

    run: str
    depth: Positive = 1000

    def replay(self, path: Path, queries: Sequence[str], first: Mapping[str, int]) -> Rankings:
        """Read the rankings of `queries` from the run file.

        Raises DataError if a line is malformed, a ranked document has no chunk, or the run has none of the queries.
        """
        scores = read_run(path)
        unknown = sorted({doc for query in queries for doc in scores.get(query, {})} - first.keys())
        if unknown:
            message = f"run '{self.run}' ranks {len(unknown)} documents without a chunk in the corpus"
            raise DataError(f"{path}: {message}, such as '{unknown[0]}'; its ranks would be wrong without them")
        if not scores.keys() & set(queries):
            message = f"run '{self.run}' ranks none of the {len(queries)} queries, but queries such as"
            raise DataError(f"{path}: {message} '{next(iter(scores), '')}'")
        return Rankings.of([self._row(scores.get(query, {}), first) for query in queries])

    def _row(self, scores: Mapping[str, float], first: Mapping[str, int]) -> Row:
        order = sorted(scores, key=lambda doc: (scores[doc], doc), reverse=True)[: self.depth]
        ids = np.array([first[doc] for doc in order], np.int64)
        return ids, np.array([scores[doc] for doc in order], np.float64)


def read_run(path: Path) -> dict[str, dict[str, float]]:
    """Read the scores of a run by query and document. Raises DataError at the first malformed line."""
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
    """Parse a line of a run into query, document and score. Raises DataError if the line is malformed."""
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
