"""The data of the report's query explorer, in compressed blocks that the page unpacks one at a time.

Every distinct passage has a number, and a trial's selection is a list of numbers. Texts are stored separately, once
each, by document. If the page would become too large, dropped passages are omitted first, then trials from the end of
the list; a note says what is missing.
"""

import base64
import gzip
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from harness.core.records import Floats, Ints, Query
from harness.data.dataset import Dataset
from harness.evaluation.metrics import split_metric
from harness.evaluation.metrics.intervals import union
from harness.evaluation.stats import Flags
from harness.running.judging.verdict_json import verdict_json
from harness.running.launch_result import Launch
from harness.running.stages.selections import KEPT
from reports.numbers import outcome_words
from reports.page.shown_documents import shown_documents

_BLOCK = 400_000
"""Approximate characters of JSON in a block, which the page unpacks to show a query."""
_PLACES = 8
"""Max equivalent places of an evidence item that are stored."""


@dataclass(frozen=True)
class Packed:
    """The explorer's data, each part as base64 of gzipped JSON, and notes on what was omitted, a sentence each."""

    index: str
    blocks: list[str]
    texts: list[str]
    notes: list[str]

    @property
    def size(self) -> int:
        """The size in the page, in characters."""
        return len(self.index) + sum(map(len, self.blocks)) + sum(map(len, self.texts))


class _Selected(NamedTuple):
    """A trial's passages in the order of queries; those of query q are at `bounds[q]` to `bounds[q + 1]`.

    A passage is one integer, of its start in the corpus and its length; the packer then numbers the distinct ones.
    """

    bounds: list[int]
    passage: Ints
    score: Floats
    tokens: Ints
    step: Ints
    reason: Ints
    steps: list[str]
    reasons: list[str]
    rows: int
    """The number of passages, the dropped ones included. Blocks get shorter with it, which also compresses better."""


class _Level(NamedTuple):
    """How much is stored: number of trials, dropped passages per query (None: all), and whether with their texts."""

    trials: int
    dropped: int | None
    texts: bool


def pack(launch: Launch, metrics: Sequence[str], order: Sequence[int], budget: int) -> Packed:
    """Returns the explorer's data of a launch with a session, within `budget` characters if possible.

    `metrics` are those to sort queries by; `order` lists the indices of the trials, the most important first.
    """
    packers: dict[bool, _Packer] = {}
    *levels, last = _levels(len(order))
    for level in (*levels, last):
        if level is not last and _least(launch, order[: level.trials]) > budget:
            continue
        with_dropped = level.dropped != 0
        if with_dropped not in packers:
            packers[with_dropped] = _Packer(launch, metrics, order[: level.trials], with_dropped=with_dropped)
        made = packers[with_dropped].packed(order, level, None if level is last else budget)
        if made is not None and (level is last or made.size <= budget):
            return made
    raise AssertionError("the last level has no budget")


def _least(launch: Launch, trials: Sequence[int]) -> float:
    """A lower bound on the characters that the selections of these trials need: one per passage."""
    return sum(launch.results[at].efficiency["passages"] * len(launch.results[at].queries) for at in trials)


def _levels(trials: int) -> Iterator[_Level]:
    yield from (_Level(trials, dropped, True) for dropped in (None, 20, 10, 5, 0))
    while trials > 2:
        trials = max(2, trials // 2)
        yield _Level(trials, 0, True)
    yield _Level(2, 0, False)


class _Packer:
    """The selections of the first trials of an order, with or without the passages that were dropped."""

    def __init__(self, launch: Launch, metrics: Sequence[str], trials: Sequence[int], *, with_dropped: bool) -> None:
        assert launch.session is not None
        self._with_dropped = with_dropped
        self._launch, self._metrics, session = launch, metrics, launch.session
        self._data: Dataset = session.outputs(session.trials[0]).data
        self._documents, self._numbers = shown_documents(session, trials)
        lengths = self._documents.lengths + 1
        self._base = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        self._extent = int(self._base[-1]), int(lengths.max(initial=1))
        trials = sorted(trials)
        selected = [self._selected(at) for at in trials]
        every, numbers = np.unique(np.concatenate([one.passage for one in selected]), return_inverse=True)
        ends = np.cumsum([len(one.passage) for one in selected])
        parts = np.split(numbers.astype(np.int64), ends[:-1])
        self._selections = {
            at: one._replace(passage=part) for at, one, part in zip(trials, selected, parts, strict=True)
        }
        at, self._length = np.unravel_index(every, self._extent)
        self._doc = np.searchsorted(self._base, at, "right") - 1
        self._start = at - self._base[self._doc]

    def _selected(self, number: int) -> _Selected:
        session = self._launch.session
        assert session is not None
        trial = session.trials[number]
        found = session.outputs(trial).selection
        columns, rows = found.arrays, len(found.arrays["query"])
        order = np.argsort(columns["query"], kind="stable")
        if not self._with_dropped:
            order = order[columns["step"][order] == KEPT]
        doc, start, end = (columns[name][order].astype(np.int64) for name in ("doc", "start", "end"))
        doc = self._numbers[number][doc] if number in self._numbers else doc
        passage = np.ravel_multi_index((self._base[doc] + start, end - start), self._extent)
        bounds = np.searchsorted(columns["query"][order], np.arange(found.data["queries"] + 1)).tolist()
        score, step, reason = (columns[name][order] for name in ("score", "step", "reason"))
        tokens = (columns["tokens"] + columns["context_tokens"])[order].astype(np.int64)
        return _Selected(bounds, passage, score, tokens, step, reason, found.data["steps"], found.data["reasons"], rows)

    # -- parts

    def packed(self, order: Sequence[int], level: _Level, budget: int | None) -> Packed | None:
        """Returns all parts for the first trials of `order`; None as soon as they are certain to exceed the budget."""
        trials = list(order[: level.trials])
        used = np.zeros(len(self._doc), bool)
        blocks: list[str] = []
        firsts: list[int] = []
        queries = len(self._data.query_set.queries)
        for first, last in self._spans(trials, level, queries):
            firsts.append(first)
            blocks.append(_packed(self._block(trials, level, first, last, used)))
            # Blocks are of similar size: a few are enough to estimate the total.
            if budget is not None and sum(map(len, blocks)) * queries > 1.05 * budget * max(last, queries // 10):
                return None
        texts, where = self._texts(used)
        index = self._index(trials, firsts, where)
        return Packed(_packed(index), blocks, texts, self._notes(order, level))

    def _spans(self, trials: Sequence[int], level: _Level, queries: int) -> Iterator[tuple[int, int]]:
        """Ranges of queries whose blocks have about `_BLOCK` characters."""
        rows = sum(self._selections[at].rows for at in trials)
        each = max(1, int(_BLOCK * queries / max(1, 12 * rows)))
        yield from ((first, min(queries, first + each)) for first in range(0, queries, each))

    def _block(self, trials: Sequence[int], level: _Level, first: int, last: int, used: Flags) -> dict[str, Any]:
        """A range of queries, by trial and query: the selected passages, their scores, the dropped passages each
        followed by the index of its step and reason, and the tokens of the selected ones."""
        reasons: dict[tuple[str, str], int] = {}
        rows = [self._rows(self._selections[at], level, first, last, reasons, used) for at in trials]
        made: dict[str, Any] = {"rows": rows, "reasons": list(reasons)}
        if self._launch.judging is not None:
            made["judged"] = [self._judged(at, first, last) for at in trials]
        return made

    def _rows(
        self,
        one: _Selected,
        level: _Level,
        first: int,
        last: int,
        reasons: dict[tuple[str, str], int],
        used: Flags,
    ) -> list[list[Any]]:
        part = slice(one.bounds[first], one.bounds[last])
        query = np.repeat(np.arange(last - first), np.diff(one.bounds[first : last + 1]))
        passage, score, step, reason = (column[part] for column in (one.passage, one.score, one.step, one.reason))
        kept, dropped = step == KEPT, step != KEPT
        if level.dropped is not None:
            dropped &= _foremost(query, np.where(dropped, score, -np.inf), level.dropped)
        used[passage[kept]] = True
        if level.texts:
            used[passage[dropped]] = True
        whys, number = np.unique(step[dropped] * len(one.reasons) + reason[dropped], return_inverse=True)
        known = [divmod(int(why), len(one.reasons)) for why in whys]
        codes = [reasons.setdefault((one.steps[at], one.reasons[why]), len(reasons)) for at, why in known]
        pairs = np.column_stack([passage[dropped], np.array(codes, np.int64)[number] if codes else number])
        ends = [np.searchsorted(query[chosen], np.arange(last - first + 1)).tolist() for chosen in (kept, dropped)]
        keeps, scores, drops = passage[kept].tolist(), np.round(score[kept], 4).tolist(), pairs.ravel().tolist()
        tokens = one.tokens[part][kept].tolist()
        return [
            [keeps[lo:hi], scores[lo:hi], drops[2 * begin : 2 * end], tokens[lo:hi]]
            for (lo, hi), (begin, end) in zip(*map(pairwise, ends), strict=True)
        ]

    def _judged(self, trial: int, first: int, last: int) -> list[dict[str, Any]]:
        """The verdicts on a trial's queries by judge."""
        session, judging = self._launch.session, self._launch.judging
        assert session is not None
        assert judging is not None
        verdicts = judging.verdicts(session.trials[trial])[first:last]
        return [{label: verdict_json(one) for label, one in row.items()} for row in verdicts]

    def _texts(self, used: Flags) -> tuple[list[str], dict[int, int]]:
        """Blocks of `{document: [[start, text], …]}`, and the number of the block of each document."""
        snippets: dict[int, list[tuple[int, int]]] = {}
        numbers = np.flatnonzero(used)
        columns = (column[numbers].tolist() for column in (self._doc, self._start, self._length))
        for doc, start, length in zip(*columns, strict=True):
            snippets.setdefault(doc, []).append((start, start + length))
        for query in self._data.query_set.queries:
            for item in query.evidence:
                for place in () if item.whole else item.places[:1]:
                    snippets.setdefault(self._data.number[place.doc], []).append((place.start, place.end))
        blocks: list[dict[str, list[tuple[int, str]]]] = [{}]
        where: dict[int, int] = {}
        size = 0
        for doc, spans in sorted(snippets.items()):
            text = self._documents[doc].text
            pieces = [(start, text[start:end]) for start, end in union(spans)]
            if size > _BLOCK:
                blocks.append({})
                size = 0
            blocks[-1][str(doc)] = pieces
            where[doc] = len(blocks) - 1
            size += sum(len(piece) for _, piece in pieces)
        return [_packed(block) for block in blocks], where

    def _index(self, trials: Sequence[int], firsts: list[int], where: dict[int, int]) -> dict[str, Any]:
        results = [self._launch.results[at] for at in trials]
        evidence_outcomes = sorted(
            {outcome for result in results for row in result.evidence_outcomes for outcome in row}
        )
        code = {outcome: at for at, outcome in enumerate(evidence_outcomes)}
        documents = set(self._doc.tolist()) | {
            self._data.number[place.doc]
            for query in self._data.query_set.queries
            for item in query.evidence
            if not item.absent
            for place in item.places[:_PLACES]
        }
        ids, lengths = self._documents.ids, self._documents.lengths
        named = {str(at): [ids[at], where.get(at, -1), int(lengths[at])] for at in sorted(documents)}
        return {
            "trials": [result.name for result in results],
            "queries": [self._query_row(query) for query in self._data.query_set.queries],
            "documents": named | {str(at): [f"{doc} (not in the corpus)", -1, 1] for doc, at in self._absent.items()},
            "passages": [self._doc.tolist(), self._start.tolist(), self._length.tolist()],
            "metrics": list(self._metrics),
            "cutoffs": [_cutoff(metric) for metric in self._metrics],
            "scores": [[_tenths(_values(result, metric)) for result in results] for metric in self._metrics],
            "outcomes": [outcome_words(outcome) for outcome in evidence_outcomes],
            "outcome_of": [
                [[code[outcome] for outcome in row] for row in result.evidence_outcomes] for result in results
            ],
            "blocks": firsts,
        }

    @cached_property
    def _absent(self) -> dict[str, int]:
        """Negative numbers for documents with evidence that are missing from the corpus."""
        items = (item for query in self._data.query_set.queries for item in query.evidence if item.absent)
        names = dict.fromkeys(place.doc for item in items for place in item.places)
        return {name: -at for at, name in enumerate(names, 1)}

    def _query_row(self, query: Query) -> dict[str, Any]:
        number, absent = self._data.number, self._absent
        items = [
            [[number.get(p.doc) or absent.get(p.doc, 0), p.start, p.end] for p in item.places[:_PLACES]]
            for item in query.evidence
        ]
        record = {"id": query.id, "text": query.text, "evidence": items, "whole": query.by_document}
        kind = query.metadata.get("type")
        return record | ({"answer": query.answer} if query.answer else {}) | ({"type": str(kind)} if kind else {})

    def _notes(self, order: Sequence[int], level: _Level) -> list[str]:
        notes = []
        if level.trials < len(order):
            notes.append(f"the explorer has {level.trials} of {len(order)} trials; choose others with --explore")
        if level.dropped is not None:
            message = f"the best {level.dropped} per query are shown" if level.dropped else "none are shown"
            notes.append(f"of the passages dropped by selector steps, {message}; per_query.jsonl.gz has all of them")
        return [f"To keep the page small, {note}." for note in notes]


def _foremost(query: Ints, score: Floats, count: int) -> Flags:
    """Whether a row is among the `count` rows with the highest scores of its query; queries are sorted."""
    order = np.lexsort((-score, query))
    begin = np.searchsorted(query, query)  # start of each row's query, the same in both orders
    rank = np.empty(len(query), np.int64)
    rank[order] = np.arange(len(query)) - begin
    return np.asarray(rank < count)


def _values(result: Any, metric: str) -> Floats:
    found: Floats = result.judged[metric].values if metric in result.judged else result.scores[metric]
    return found


def _cutoff(metric: str) -> dict[str, int]:
    """The cutoff of a metric, in passages or tokens; empty for a metric without one."""
    parsed = split_metric(metric)
    if parsed.tokens is not None:
        return {"tokens": parsed.tokens}
    return {"passages": parsed.k} if parsed.k is not None else {}


def _tenths(values: Floats) -> list[int | None]:
    """Scores in units of 1/10,000, to save characters; None if a query has none."""
    return [None if math.isnan(value) else round(value * 10_000) for value in values.tolist()]


def _packed(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A file may contain a lone surrogate, which UTF-8 cannot encode.
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0)).decode("ascii")
