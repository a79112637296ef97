"""What the report's query explorer shows, packed small: compressed blocks that the page opens one at a time.

Every distinct passage has a number, and a trial's selection is numbers. Texts stand apart, once each, by document. A
page that would grow too large leaves out, in this order: most of what was dropped, all of it, the texts of what was
dropped, and trials from the end of the list; and says so.
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

from harness.components.verdict import Verdict
from harness.core.records import Floats, Ints, Query
from harness.data.dataset import Dataset
from harness.evaluation.metrics import is_metric, parse_metric
from harness.evaluation.metrics.intervals import union
from harness.evaluation.stats import Flags
from harness.running.judging.verdict_json import verdict_json
from harness.running.launch_result import Launch
from harness.running.stages.select import KEPT
from reports.numbers import outcome_words

_LENGTH_BITS = 24
"""A passage is one number: where it begins in the corpus, and these bits for its length."""
_BLOCK = 400_000
"""Characters of JSON in a block, about: what the page must open to show a query."""
_PLACES = 8
"""Equivalent places of an evidence item that are told."""


@dataclass(frozen=True)
class Packed:
    """The explorer's data, each part JSON in gzip in base64, and what had to be left out, a sentence each."""

    index: str
    blocks: list[str]
    texts: list[str]
    notes: list[str]

    @property
    def size(self) -> int:
        """Characters in the page."""
        return len(self.index) + sum(map(len, self.blocks)) + sum(map(len, self.texts))


class _Selected(NamedTuple):
    """A trial's passages in the order of queries, those of number q from `bounds[q]` to `bounds[q + 1]`."""

    bounds: list[int]
    passage: Ints
    score: Floats
    tokens: Ints
    step: Ints
    reason: Ints
    steps: list[str]
    reasons: list[str]


class _Level(NamedTuple):
    """How much is told: trials, dropped passages a query (None: all), and whether with their texts."""

    trials: int
    dropped: int | None
    texts: bool


def pack(launch: Launch, metrics: Sequence[str], order: Sequence[int], budget: int) -> Packed:
    """The explorer's data of a launch with a session, within `budget` characters.

    `metrics` are those to sort queries by; `order` gives the trials' numbers, the most important first.
    """
    packer = _Packer(launch, metrics)
    *levels, last = _levels(len(order))
    for level in levels:
        made = packer.packed(order, level, budget)
        if made is not None and made.size <= budget:
            return made
    found = packer.packed(order, last, None)
    assert found is not None
    return found


def _levels(trials: int) -> Iterator[_Level]:
    yield from (_Level(trials, dropped, True) for dropped in (None, 20, 10, 5, 0))
    while trials > 2:
        trials = max(2, trials // 2)
        yield _Level(trials, 0, True)
    yield _Level(2, 0, False)


class _Packer:
    def __init__(self, launch: Launch, metrics: Sequence[str]) -> None:
        assert launch.session is not None
        self._launch, self._metrics, session = launch, metrics, launch.session
        self._verdicts: dict[int, list[dict[str, Verdict]]] = {}
        self._data: Dataset = session.pipeline(session.trials[0]).data
        lengths = [len(doc.text) + 1 for doc in self._data.documents]
        self._base = np.cumsum([0, *lengths]).astype(np.int64)
        selected = [self._selected(at) for at in range(len(session.trials))]
        every, numbers = np.unique(np.concatenate([one.passage for one in selected]), return_inverse=True)
        ends = np.cumsum([len(one.passage) for one in selected])
        self._selections = [
            one._replace(passage=part)
            for one, part in zip(selected, np.split(numbers.astype(np.int64), ends[:-1]), strict=True)
        ]
        at = every >> _LENGTH_BITS
        self._doc = np.searchsorted(self._base, at, "right") - 1
        self._start = at - self._base[self._doc]
        self._length = every & ((1 << _LENGTH_BITS) - 1)

    def _selected(self, number: int) -> _Selected:
        session = self._launch.session
        assert session is not None
        trial = session.trials[number]
        found = session.pipeline(trial).selection(trial)
        columns, order = found.arrays, np.argsort(found.arrays["query"], kind="stable")
        doc, start, end = (columns[name][order].astype(np.int64) for name in ("doc", "start", "end"))
        where = ((self._base[doc] + start) << _LENGTH_BITS) | np.minimum(end - start, (1 << _LENGTH_BITS) - 1)
        bounds = np.searchsorted(columns["query"][order], np.arange(found.data["queries"] + 1)).tolist()
        score, step, reason = (columns[name][order] for name in ("score", "step", "reason"))
        tokens = (columns["tokens"] + columns["context_tokens"])[order].astype(np.int64)
        return _Selected(bounds, where, score, tokens, step, reason, found.data["steps"], found.data["reasons"])

    # -- parts

    def packed(self, order: Sequence[int], level: _Level, budget: int | None) -> Packed | None:
        """All parts for the first trials of `order`; None as soon as it is clear that they exceed the budget."""
        text = list(order[: level.trials])
        used = np.zeros(len(self._doc), bool)
        blocks: list[str] = []
        firsts: list[int] = []
        queries = len(self._data.query_set.queries)
        for first, last in self._spans(text, level, queries):
            firsts.append(first)
            blocks.append(_packed(self._block(text, level, first, last, used)))
            # Blocks are alike: a few tell how large all will be.
            if budget is not None and sum(map(len, blocks)) * queries > 1.05 * budget * max(last, queries // 10):
                return None
        texts, where = self._texts(used)
        index = self._index(text, firsts, where)
        return Packed(_packed(index), blocks, texts, self._notes(order, level))

    def _spans(self, text: Sequence[int], level: _Level, queries: int) -> Iterator[tuple[int, int]]:
        """Ranges of queries whose blocks are about as large as wanted."""
        rows = sum(len(self._selections[at].passage) for at in text)
        each = max(1, int(_BLOCK * queries / max(1, 12 * rows)))
        yield from ((first, min(queries, first + each)) for first in range(0, queries, each))

    def _block(self, text: Sequence[int], level: _Level, first: int, last: int, used: Flags) -> dict[str, Any]:
        """A range of queries: by trial, by query, the passages kept, their scores, those dropped with the number of
        step and reason after each, and the tokens of those kept."""
        reasons: dict[tuple[str, str], int] = {}
        rows = [self._rows(self._selections[at], level, first, last, reasons, used) for at in text]
        made: dict[str, Any] = {"rows": rows, "reasons": list(reasons)}
        if self._launch.judging is not None:
            made["judged"] = [self._judged(at, first, last) for at in text]
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
        """What the judges say of a trial's queries, judge by judge."""
        session, judging = self._launch.session, self._launch.judging
        assert session is not None
        assert judging is not None
        if trial not in self._verdicts:
            self._verdicts[trial] = judging.verdicts(session.trials[trial])
        return [{label: verdict_json(one) for label, one in row.items()} for row in self._verdicts[trial][first:last]]

    def _texts(self, used: Flags) -> tuple[list[str], dict[int, int]]:
        """Blocks of `{document: [[start, text], …]}`, and the block of each document."""
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
            text = self._data.documents[doc].text
            pieces = [(start, text[start:end]) for start, end in union(spans)]
            if size > _BLOCK:
                blocks.append({})
                size = 0
            blocks[-1][str(doc)] = pieces
            where[doc] = len(blocks) - 1
            size += sum(len(piece) for _, piece in pieces)
        return [_packed(block) for block in blocks], where

    def _index(self, text: Sequence[int], firsts: list[int], where: dict[int, int]) -> dict[str, Any]:
        results = [self._launch.results[at] for at in text]
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
        named = {str(at): [self._data.documents[at].id, where.get(at, -1)] for at in sorted(documents)}
        return {
            "trials": [result.name for result in results],
            "queries": [self._query_row(query) for query in self._data.query_set.queries],
            "documents": named | {str(at): [f"{doc} (not in the corpus)", -1] for doc, at in self._absent.items()},
            "passages": [self._doc.tolist(), self._start.tolist(), self._length.tolist()],
            "metrics": list(self._metrics),
            "cutoffs": [_cutoff(metric) for metric in self._metrics],
            "scores": [[_tenths(_values(result, metric)) for result in results] for metric in self._metrics],
            "fates": [outcome_words(outcome) for outcome in evidence_outcomes],
            "fated": [[[code[outcome] for outcome in row] for row in result.evidence_outcomes] for result in results],
            "blocks": firsts,
        }

    @cached_property
    def _absent(self) -> dict[str, int]:
        """Numbers below zero for documents with evidence that the corpus lacks."""
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
            notes.append(f"the explorer holds {level.trials} of {len(order)} trials; name others with --explore")
        if level.dropped is not None:
            message = f"the best {level.dropped} a query" if level.dropped else "none"
            notes.append(
                f"of what selector steps dropped, {message} can be looked at; all of it is in per_query.jsonl.gz"
            )
        return [f"To keep the page small, {note}." for note in notes]


def _foremost(query: Ints, score: Floats, count: int) -> Flags:
    """Whether a row is among the `count` of its query with the highest score; queries are in order."""
    order = np.lexsort((-score, query))
    begin = np.searchsorted(query, query)  # where each row's query begins; the same in both orders
    rank = np.empty(len(query), np.int64)
    rank[order] = np.arange(len(query)) - begin
    return np.asarray(rank < count)


def _values(result: Any, metric: str) -> Floats:
    found: Floats = result.judged[metric].values if metric in result.judged else result.scores[metric]
    return found


def _cutoff(metric: str) -> dict[str, int]:
    """Where a metric stops reading: after so many passages, or tokens; nothing for one that reads on."""
    if not is_metric(metric):
        return {}
    parsed = parse_metric(metric)
    if parsed.tokens is not None:
        return {"tokens": parsed.tokens}
    return {"passages": parsed.k} if parsed.k is not None else {}


def _tenths(values: Floats) -> list[int | None]:
    """Scores in units of 1/10,000, which read shorter; None where a query has none."""
    return [None if math.isnan(value) else round(value * 10_000) for value in values.tolist()]


def _packed(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Half a surrogate pair, which a file may hold, has no UTF-8.
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0)).decode("ascii")
