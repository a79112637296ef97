"""Selector steps applied one after another to the hits of all queries; each drop keeps its step and reason."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from harness.components.component import step_labels
from harness.components.llm_roles import UNGRADED
from harness.components.roles import BaseReranker, Selector
from harness.core.blame import blamed, understood
from harness.core.errors import ConfigError
from harness.core.rankings import Rankings
from harness.core.records import Chunk, Hit, Outcome, Query
from harness.core.timing import TIMED_QUERIES
from harness.running.stages.passages import Passages
from harness.running.stages.selections import COLUMNS, KEPT
from harness.storage.model_outputs import Pair, Scored
from harness.storage.store import Artifact


class ModelLookups(NamedTuple):
    """Functions that supply the outputs of models to selector steps.

    `with_vectors` returns the same chunks with their unit vectors, `scores` a reranker's scores of pairs.
    """

    with_vectors: Callable[[Sequence[Chunk]], list[Chunk]]
    scores: Callable[[BaseReranker, Sequence[Pair]], Mapping[Pair, Scored]]


class SelectionRun:
    """The hits of all queries while a trial's selector steps are applied one after another."""

    def __init__(self, queries: Sequence[Query], hits: Sequence[list[Hit]], lookups: ModelLookups) -> None:
        # A selector must not see more than a production system: neither evidence nor answer.
        self.queries = [replace(query, evidence=(), answer=None) for query in queries]
        self.hits = list(hits)
        self._lookups = lookups
        self._table = _Table()
        # Measured warm: otherwise the first trial of a chunking would pay for what all others find in caches.
        self._ms = [0.0] * min(TIMED_QUERIES, len(queries))
        self._usd = 0.0
        self._embedded: dict[tuple[str, int, int], int] = {}
        self._asked = self._ungraded = 0
        self._requests: dict[int, int] = {}

    def pairs(self) -> list[Pair]:
        """Return the distinct pairs of query and passage text among the current hits."""
        rows = zip(self.queries, self.hits, strict=True)
        return list(dict.fromkeys((query.text, hit.chunk.indexed) for query, hits in rows for hit in hits))

    def take(self, place: int, step: Selector) -> None:
        """Apply step number `place`. Raises ConfigError if it returns an invalid outcome."""
        reranker = step.reranker
        if reranker is not None:
            texts = (len({hit.chunk.indexed for hit in hits}) for hits in self.hits)
            self._requests[place] = sum(map(reranker.requests, texts))
            self._rescore(reranker)
        if step.uses_vectors:
            self._add_vectors()
        for at, (query, hits) in enumerate(zip(self.queries, self.hits, strict=True)):
            with blamed(step, f"selector {step.name()}: query '{query.id}'", hits):
                if at < len(self._ms):
                    step.select(query, hits)  # a service has seen these passages before; see `_ms`
                begin = time.perf_counter()
                outcome = step.select(query, hits)
                taken = time.perf_counter() - begin
            if at < len(self._ms):
                self._ms[at] += taken * 1000
            where = f"selector {step.name()}: query '{query.id}'"
            with understood(where, "Outcome(kept, dropped), lists of hits and of drops"):
                _check(where, hits, outcome)
            self._table.count(place, hits, outcome.kept)
            if outcome.dropped:
                dropped, reasons = zip(*outcome.dropped, strict=True)
                self._table.add(at, dropped, place, reasons)
            self.hits[at] = outcome.kept

    def _rescore(self, step: BaseReranker) -> None:
        scored = self._lookups.scores(step, self.pairs())
        self._usd += math.fsum(one.usd for one in scored.values())
        if step.prompter is not None:
            self._asked += len(scored)
            self._ungraded += sum(one.score == UNGRADED for one in scored.values())
        for at, (query, hits) in enumerate(zip(self.queries, self.hits, strict=True)):
            found = [scored[query.text, hit.chunk.indexed] for hit in hits]
            if not all(math.isfinite(one.score) for one in found):
                raise ConfigError(f"selector {step.name()}: returned a score that is not a number")
            self.hits[at] = [hit._replace(score=one.score) for hit, one in zip(hits, found, strict=True)]
            if at < len(self._ms):
                # A text that several hits share was scored only once.
                self._ms[at] += sum({hit.chunk.indexed: one.ms for hit, one in zip(hits, found, strict=True)}.values())

    def _add_vectors(self) -> None:
        every = self._lookups.with_vectors([hit.chunk for hits in self.hits for hit in hits])
        self._embedded |= {(chunk.doc, chunk.start, chunk.end): chunk.tokens for chunk in every}
        chunks = iter(every)
        self.hits = [[hit._replace(chunk=next(chunks)) for hit in hits] for hits in self.hits]

    def artifact(self, steps: Sequence[Selector], number: Mapping[str, int]) -> Artifact:
        """Return the passages kept and dropped for all queries, one row per passage; see `Selections`.

        `number` maps a document's id to its position in the corpus.
        """
        for at, hits in enumerate(self.hits):
            self._table.add(at, hits, KEPT, [""] * len(hits))
        facts = {"steps": step_labels(steps), "queries": len(self.queries), "usd": self._usd}
        facts |= {"asked": self._asked, "ungraded": self._ungraded, "requests": list(self._requests.items())}
        facts["embedded_tokens"] = sum(self._embedded.values())
        return self._table.artifact(self._ms, facts, number)


def retrieved_hits(ranked: Rankings, passages: Passages) -> list[list[Hit]]:
    """Return the hits of each query, best first."""
    scores = (ranked.row(query)[1].tolist() for query in range(ranked.queries))
    return [list(map(Hit, passages.hits(ranked, query), row)) for query, row in enumerate(scores)]


class _Table:
    """The rows of a selection artifact under construction."""

    def __init__(self) -> None:
        self._hits: list[Hit] = []
        self._columns: dict[str, list[int]] = {"query": [], "step": [], "reason": []}
        self._reasons: dict[str, int] = {}
        self._statistics: dict[int, list[float]] = {}

    def add(self, query: int, hits: Sequence[Hit], step: int, reasons: Sequence[str]) -> None:
        self._hits += hits
        known = self._reasons
        self._columns["query"] += [query] * len(hits)
        self._columns["step"] += [step] * len(hits)
        self._columns["reason"] += [known.setdefault(reason, len(known)) for reason in reasons]

    def count(self, step: int, before: Sequence[Hit], after: Sequence[Hit]) -> None:
        totals = self._statistics.setdefault(step, [0.0] * 5)
        facts = (len(before), len(after), sum(hit.chunk.tokens for hit in after), sum(hit.score for hit in after), 1)
        for place, fact in enumerate(facts):
            totals[place] += fact

    def artifact(self, ms: list[float], facts: Mapping[str, Any], number: Mapping[str, int]) -> Artifact:
        chunks = [hit.chunk for hit in self._hits]
        context_tokens = [chunk.context_tokens for chunk in chunks]
        columns: dict[str, list[Any]] = {
            **self._columns,
            "doc": [number[chunk.doc] for chunk in chunks],
            "start": [chunk.start for chunk in chunks],
            "end": [chunk.end for chunk in chunks],
            "score": [hit.score for hit in self._hits],
            "tokens": [chunk.tokens - extra for chunk, extra in zip(chunks, context_tokens, strict=True)],
            "context_tokens": context_tokens,
        }
        arrays = {name: np.array(columns[name], np.float64 if name == "score" else np.int32) for name in COLUMNS}
        # The score is a mean over the kept passages, the others are means over queries.
        statistics = [
            {"input": given / n, "kept": kept / n, "tokens": tokens / n, "score": score / kept if kept else 0.0}
            for given, kept, tokens, score, n in self._statistics.values()
        ]
        data = {**facts, "reasons": list(self._reasons), "statistics": statistics}
        return Artifact({**arrays, "ms": np.array(ms)}, data)


def _check(where: str, hits: Sequence[Hit], outcome: Outcome) -> None:
    """Raise ConfigError unless each hit is kept, cut, part of a kept passage or dropped, and named only once."""
    if not isinstance(outcome, Outcome):
        raise ConfigError(f"{where}: select must return an Outcome(kept, dropped), not {type(outcome).__name__}")
    if not all(math.isfinite(hit.score) for hit in (*hits, *outcome.kept)):
        raise ConfigError(f"{where}: a score is not a number")
    kept = {(hit.chunk.doc, hit.chunk.start, hit.chunk.end) for hit in outcome.kept}
    if len(kept) < len(outcome.kept):
        raise ConfigError(f"{where}: kept the same passage twice")
    given = {id(hit.chunk) for hit in hits}
    text = {id(hit.chunk) for hit in outcome.kept} | {id(drop.hit.chunk) for drop in outcome.dropped}
    if text == given and len(outcome.kept) + len(outcome.dropped) == len(hits):
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
        raise ConfigError(f"{where}: returned a hit twice; each must be either kept or dropped")
