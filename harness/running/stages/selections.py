"""Selections as they are stored: one row per passage, made into records one query at a time."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.core.sequences import Lazy
from harness.evaluation.metrics.matching import Passage
from harness.evaluation.results import Selection
from harness.storage.store import Artifact

COLUMNS = ("query", "doc", "start", "end", "score", "tokens", "context_tokens", "step", "reason")
KEPT = -1
"""The value of the column `step` for a passage that was kept."""


class Selections(Lazy[Selection]):
    """The selections of an artifact of the select stage, one per query; `documents` are ids in corpus order.

    Most passages are dropped, and few readers need those, so records are made only when they are asked for.
    """

    def __init__(self, artifact: Artifact, documents: Sequence[str]) -> None:
        self._queries = artifact.data["queries"]
        # Only the ids that occur: a large corpus has many more, and reading one of those takes a while.
        self._documents = {number: documents[number] for number in np.unique(artifact.arrays["doc"]).tolist()}
        self._steps, self._reasons = artifact.data["steps"], artifact.data["reasons"]
        order = np.argsort(artifact.arrays["query"], kind="stable")
        self._columns = [artifact.arrays[name][order].tolist() for name in COLUMNS[1:]]
        queries = artifact.arrays["query"][order]
        self._bounds = np.searchsorted(queries, np.arange(self._queries + 1)).tolist()

    def __len__(self) -> int:
        return int(self._queries)

    def _item(self, number: int) -> Selection:
        return Selection(self.kept(number), [Passage(**row) for row in self.dropped_rows(number)])

    def _rows(self, query: int) -> "zip[tuple[Any, ...]]":
        at = slice(self._bounds[query], self._bounds[query + 1])
        return zip(*(column[at] for column in self._columns), strict=True)

    def kept(self, query: int) -> list[Passage]:
        """Return the passages kept for a query, in rank order."""
        documents = self._documents
        return [
            Passage(documents[doc], start, end, tokens, context_tokens, score)
            for doc, start, end, score, tokens, context_tokens, step, _ in self._rows(query)
            if step == KEPT
        ]

    def dropped(self, query: int) -> dict[str, list[Passage]]:
        """Return the passages dropped for a query, by the label of the step."""
        documents, steps = self._documents, self._steps
        found: dict[str, list[Passage]] = {label: [] for label in steps}
        for doc, start, end, _, tokens, context_tokens, step, _ in self._rows(query):
            if step != KEPT:
                found[steps[step]].append(Passage(documents[doc], start, end, tokens, context_tokens))
        return found

    def dropped_rows(self, query: int) -> list[dict[str, Any]]:
        """Return the passages dropped for a query as records of JSON, with the fields of `Passage`."""
        documents, steps, reasons = self._documents, self._steps, self._reasons
        return [
            {
                "doc": documents[doc],
                "start": start,
                "end": end,
                "score": score,
                "tokens": tokens,
                "context_tokens": context_tokens,
                "step": steps[step],
                "reason": reasons[reason],
            }
            for doc, start, end, score, tokens, context_tokens, step, reason in self._rows(query)
            if step != KEPT
        ]
