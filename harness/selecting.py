"""The select stage: a trial's steps over the rankings of all queries, every drop with its step and reason."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from harness.component import Selector, step_labels
from harness.errors import ConfigError
from harness.model import Hit, Outcome, Query, Rankings
from harness.passages import Passages
from harness.results import Picked, Selection
from harness.store import Artifact
from harness.timing import TIMED_QUERIES

_COLUMNS = ("query", "doc", "start", "end", "score", "tokens", "context_tokens", "step", "reason")
_KEPT = -1


def select_passages(
    steps: Sequence[Selector], queries: Sequence[Query], ranked: Rankings, passages: Passages, number: Mapping[str, int]
) -> Artifact:
    """What each query ends up with and what was dropped on the way, one row a passage; `read_selections` reads it.

    `number` gives each document's position in the corpus. Raises ConfigError where a step returns what it must not.
    """
    table = _Table()
    ms: list[float] = []
    for at, query in enumerate(queries):
        ids, scores = ranked.row(at)
        hits = [Hit(passages.chunk(chunk), score) for chunk, score in zip(ids.tolist(), scores.tolist(), strict=True)]
        # A selector works on what a live system would know: never on the evidence or the answer.
        blind = replace(query, evidence=(), answer=None)
        begin = time.perf_counter()
        for place, step in enumerate(steps):
            outcome = step.select(blind, hits)
            _check(step, hits, outcome)
            table.count(place, hits, outcome.kept)
            for drop in outcome.dropped:
                table.add(at, drop.hit, place, drop.reason)
            hits = outcome.kept
        if at < TIMED_QUERIES:
            ms.append((time.perf_counter() - begin) * 1000)
        for hit in hits:
            table.add(at, hit, _KEPT, "")
    return table.artifact(ms, step_labels(steps), len(queries), number)


def read_selections(artifact: Artifact, documents: Sequence[str]) -> list[Selection]:
    """The selections of `select_passages`, one per query; `documents` are the ids in corpus order."""
    names, reasons = artifact.data["steps"], artifact.data["reasons"]
    made = [Selection([], []) for _ in range(artifact.data["queries"])]
    columns = (artifact.arrays[name].tolist() for name in _COLUMNS)
    for query, doc, start, end, score, tokens, context_tokens, step, reason in zip(*columns, strict=True):
        span = (documents[doc], start, end, score, tokens, context_tokens)
        if step == _KEPT:
            made[query].kept.append(Picked(*span))
        else:
            made[query].dropped.append(Picked(*span, names[step], reasons[reason]))
    return made


class _Table:
    """The rows of a selection artifact while it is being made."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, str, int, int, float, int, int, int, int]] = []
        self._reasons: dict[str, int] = {}
        self._statistics: dict[int, list[float]] = {}

    def add(self, query: int, hit: Hit, step: int, reason: str) -> None:
        chunk = hit.chunk
        code = self._reasons.setdefault(reason, len(self._reasons))
        tokens = chunk.tokens - chunk.context_tokens
        self._rows.append(
            (query, chunk.doc, chunk.start, chunk.end, hit.score, tokens, chunk.context_tokens, step, code)
        )

    def count(self, step: int, before: Sequence[Hit], after: Sequence[Hit]) -> None:
        totals = self._statistics.setdefault(step, [0.0] * 5)
        facts = (len(before), len(after), sum(hit.chunk.tokens for hit in after), sum(hit.score for hit in after), 1)
        for place, fact in enumerate(facts):
            totals[place] += fact

    def artifact(self, ms: list[float], steps: list[str], queries: int, number: Mapping[str, int]) -> Artifact:
        columns: list[Any] = [list(column) for column in zip(*self._rows, strict=True)] or [[] for _ in _COLUMNS]
        columns[1] = [number[doc] for doc in columns[1]]
        arrays = {
            name: np.array(column, np.float64 if name == "score" else np.int32)
            for name, column in zip(_COLUMNS, columns, strict=True)
        }
        # Means over queries, but for the score: the mean over the passages kept.
        statistics = [
            {"input": given / n, "kept": kept / n, "tokens": tokens / n, "score": score / kept if kept else 0.0}
            for given, kept, tokens, score, n in self._statistics.values()
        ]
        data = {"steps": steps, "reasons": list(self._reasons), "queries": queries, "statistics": statistics}
        return Artifact({**arrays, "ms": np.array(ms)}, data)


def _check(step: Selector, hits: Sequence[Hit], outcome: Outcome) -> None:
    """Every hit must be kept, dropped with a reason, cut short, or be part of a passage kept; none twice."""
    where = f"selector {step.name()}"
    if not isinstance(outcome, Outcome):
        raise ConfigError(f"{where}: select must return an Outcome(kept, dropped), not {type(outcome).__name__}")
    kept = {(hit.chunk.doc, hit.chunk.start, hit.chunk.end) for hit in outcome.kept}
    if len(kept) < len(outcome.kept):
        raise ConfigError(f"{where}: kept a passage twice")
    given = {id(hit.chunk) for hit in hits}
    told = {id(hit.chunk) for hit in outcome.kept} | {id(drop.hit.chunk) for drop in outcome.dropped}
    if told == given and len(outcome.kept) + len(outcome.dropped) == len(hits):
        return
    dropped = {drop.hit.chunk.id for drop in outcome.dropped}
    for hit in hits:
        chunk = hit.chunk
        part = any(
            doc == chunk.doc and (start == chunk.start or (start <= chunk.start and chunk.end <= end))
            for doc, start, end in kept
        )
        if not part and chunk.id not in dropped:
            raise ConfigError(
                f"{where}: {chunk.id} is neither kept nor dropped; name it in Outcome.dropped with a reason"
            )
    if len(dropped) < len(outcome.dropped) or len(kept) + len(dropped) > len(hits):
        raise ConfigError(f"{where}: named a hit twice; each is either kept or dropped")
