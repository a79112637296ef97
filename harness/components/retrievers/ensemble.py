"""Chunk ensembling: search all scales at once and choose the right size for each hit."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from harness.components.component import Fraction, NotNegative, Positive
from harness.components.retrievers.bm25 import BM25
from harness.components.retrievers.dense import Dense
from harness.components.retrievers.fusing import reciprocal_ranks, weighted_sum
from harness.components.retrievers.intent import expected, has_form
from harness.components.roles import Fusion, FusionContext, Retriever, Scale
from harness.components.score_scaling import min_max
from harness.components.text_analysis import Analyzer
from harness.core.rankings import Row
from harness.core.records import Floats, Ints, Vectors
from harness.storage.store import Artifact

Weight = Annotated[float, Field(ge=0)]

_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")


@dataclass(frozen=True)
class Ensemble(Fusion):
    """Dense and BM25 search over all scales of the `scales` chunker, fused, rescored, and resized to the best scale.

    The first `fetch` hits of both are candidates. A candidate's score is the weighted mean of four values in 0..1:
    `fused`, the sum of its reciprocal ranks 1 / (c + rank), scaled over the candidates (best 1, worst 0); `semantic`,
    its cosine to the query, scaled in the same way; `completeness`, the idf-weighted fraction of the query stems in its
    parent that also occur in the candidate (1 without a parent, or if the parent has none); and `intent`, the maximum
    over its sentences of the idf-weighted fraction of query stems in the sentence, halved if the sentence lacks the
    expected form of an answer (`intent.py`). A chunk's parent is the chunk of the next coarser scale that overlaps it
    most; idf = ln(1 + (N - n + 0.5) / (n + 0.5)) over all chunks.

    Candidates are then processed from best to worst. While the completeness is below `complete`, a chunk is replaced by
    its parent. A chunk is skipped if it overlaps a passage by more than half of the shorter of the two. A chunk that
    touches or overlaps one of the first `merge_top` passages is merged into it if both together have at most
    `merge_tokens` tokens and the result overlaps no third passage.
    """

    depth: Positive = 50
    fetch: Positive = 100
    fused: Weight = 0.4
    semantic: Weight = 0.4
    completeness: Weight = 0.1
    intent: Weight = 0.1
    complete: Fraction = 0.3
    merge_tokens: NotNegative = 256
    merge_top: NotNegative = 10
    c: Annotated[float, Field(ge=0)] = 60.0
    dense: Dense = field(default_factory=Dense)
    bm25: BM25 = field(default_factory=BM25)

    @property
    def uses_vectors(self) -> bool:
        """Always true."""
        return True

    @property
    def scale(self) -> Scale:
        """Always `unit`."""
        return "unit"

    @property
    def parts(self) -> tuple[Retriever, ...]:
        """The dense and the BM25 retriever, both `fetch` deep."""
        return tuple(replace(part, depth=self.fetch) for part in (self.dense, self.bm25))

    def problem(self) -> str | None:
        """An error message if all weights are 0."""
        total = self.fused + self.semantic + self.completeness + self.intent
        return None if total > 0 else "the weights fused, semantic, completeness and intent are all 0"

    def index_settings(self) -> dict[str, object]:
        """Always empty: the stem counts depend only on the chunks."""
        return {}

    def index(self, texts: Sequence[str], corpus: Vectors | None = None) -> Artifact:
        """Count the chunks in which each stem occurs."""
        counts: dict[str, int] = {}
        for text in texts:
            for stem in _stems(text):
                counts[stem] = counts.get(stem, 0) + 1
        stems = sorted(counts)
        return Artifact({"counts": np.array([counts[stem] for stem in stems], np.int64)}, stems)

    def fuse(self, rankings: Sequence[tuple[Ints, Floats]], searched: FusionContext) -> Row:
        """Return the passages for one query: first chunks, scores, and end offsets (0 for the chunk's own end)."""
        ids, fused = weighted_sum(
            [ids for ids, _ in rankings], [reciprocal_ranks(len(ids), self.c) for ids, _ in rankings], [1.0, 1.0]
        )
        if not len(ids):
            return ids, fused
        view = _View.of(searched)
        complete = np.array([view.completeness(at) for at in ids.tolist()])
        signals = (
            (self.fused, min_max(fused)),
            (self.semantic, min_max(np.round(view.cosines(ids), 5))),
            (self.completeness, complete),
            (self.intent, np.array([view.intent(at) for at in ids.tolist()])),
        )
        weights = sum(weight for weight, _ in signals)
        scores = np.round(sum((weight / weights * values for weight, values in signals), np.zeros(len(ids))), 9)
        taken: list[_Taken] = []
        for at in np.lexsort((ids, -scores)).tolist():
            if len(taken) == self.depth:
                break
            self._take(taken, self._with_context(int(ids[at]), view), float(scores[at]), view)
        made = [(passage.first, passage.score, passage.end) for passage in taken]
        first, values, ends = zip(*made, strict=True)
        own = searched.corpus.end[list(first)]
        return np.array(first, np.int64), np.array(values), np.where(np.array(ends) == own, 0, np.array(ends))

    def _with_context(self, chunk: int, view: "_View") -> int:
        """The chunk, or its first ancestor that is complete enough."""
        while view.completeness(chunk) < self.complete:
            parent = view.parent(chunk)
            if parent is None:
                break
            chunk = parent
        return chunk

    def _take(self, taken: list["_Taken"], chunk: int, score: float, view: "_View") -> None:
        """Add a chunk as a new passage, merge it into an existing one, or skip it."""
        corpus = view.searched.corpus
        doc, start, end = int(corpus.doc[chunk]), int(corpus.start[chunk]), int(corpus.end[chunk])
        near = {at: int(corpus.start[one.first]) for at, one in enumerate(taken) if int(corpus.doc[one.first]) == doc}
        for at, begin in near.items():
            shared = min(end, taken[at].end) - max(start, begin)
            if 2 * shared > min(end - start, taken[at].end - begin):
                return
        for at, begin in near.items():
            lo, hi = min(start, begin), max(end, taken[at].end)
            fits = at < self.merge_top and corpus.count(doc, lo, hi) <= self.merge_tokens
            apart = any(other != at and lo < taken[other].end and near[other] < hi for other in near)
            if fits and not apart and view.touching(doc, (start, end), (begin, taken[at].end)):
                taken[at] = taken[at]._replace(first=chunk if start < begin else taken[at].first, end=hi)
                return
        taken.append(_Taken(chunk, end, score))


class _Taken(NamedTuple):
    """What is selected: from the beginning of the chunk `first` to the character `end`."""

    first: int
    end: int
    score: float


@dataclass(frozen=True, eq=False)
class _View:
    """One query and the corpus, with the values that the scores are computed from."""

    searched: FusionContext
    idf: dict[str, float]
    form: str | None
    known: dict[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, searched: FusionContext) -> "_View":
        stems, counts = searched.own.data, searched.own.arrays["counts"]
        total = len(searched.corpus.doc)
        idf: dict[str, float] = {}
        for stem in sorted(_stems(searched.query)):
            at = bisect_left(stems, stem)
            held = int(counts[at]) if at < len(stems) and stems[at] == stem else 0
            idf[stem] = float(np.log1p((total - held + 0.5) / (held + 0.5)))
        return cls(searched, idf, expected(searched.query))

    def cosines(self, ids: Ints) -> Floats:
        """The cosine of each chunk to the query, (ids,)."""
        if self.searched.vector is None or self.searched.vectors is None:
            raise TypeError("an ensemble needs vectors")
        return (self.searched.vectors[ids].astype(np.float64)) @ self.searched.vector.astype(np.float64)

    def weight(self, stems: frozenset[str]) -> float:
        """The sum of the idf of the query's stems that are in `stems`."""
        return sum(value for stem, value in self.idf.items() if stem in stems)

    def completeness(self, chunk: int) -> float:
        """The idf-weighted fraction of the query stems in the parent that also occur in the chunk."""
        if chunk not in self.known:
            parent = self.parent(chunk)
            texts = self.searched.corpus.texts
            whole = 0.0 if parent is None else self.weight(_stems(texts[parent]))
            own = self.weight(_stems(texts[chunk]) & _stems(texts[parent])) if parent is not None and whole else 0.0
            self.known[chunk] = own / whole if whole else 1.0
        return self.known[chunk]

    def intent(self, chunk: int) -> float:
        """The maximum idf-weighted fraction of query stems in a sentence, halved without the expected answer form."""
        total = sum(self.idf.values())
        best = 0.0
        for sentence, stems in _sentences(self.searched.corpus.texts[chunk]) if total else ():
            fraction = self.weight(stems) / total
            if fraction > best:
                best = max(best, fraction if self.form is None or has_form(sentence, self.form) else fraction / 2)
        return best

    def parent(self, chunk: int) -> int | None:
        """The chunk of the next coarser scale that shares most characters with this one; None if there is none."""
        corpus = self.searched.corpus
        doc, start, end, scale = (int(column[chunk]) for column in (corpus.doc, corpus.start, corpus.end, corpus.scale))
        lo, hi = np.searchsorted(corpus.doc, (doc, doc + 1))
        scales, starts, ends = corpus.scale[lo:hi], corpus.start[lo:hi], corpus.end[lo:hi]
        coarser = scales[scales > scale]
        if not len(coarser):
            return None
        # A chunk that is the same at several scales is stored only at the finest, so coarser scales can have gaps.
        for level in np.unique(coarser).tolist():
            at = np.flatnonzero(scales == level)
            shared = np.minimum(ends[at], end) - np.maximum(starts[at], start)
            best = int(np.argmax(shared))
            if shared[best] > 0:
                return int(lo + at[best])
        return None

    def touching(self, doc: int, one: tuple[int, int], other: tuple[int, int]) -> bool:
        """Whether two spans overlap or have only white space between them."""
        (_, end), (start, _) = sorted((one, other))
        return start <= end or self.searched.corpus.blank(doc, end, start)


@lru_cache(maxsize=100_000)
def _stems(text: str) -> frozenset[str]:
    return frozenset(Analyzer("porter", "lucene")(text))


@lru_cache(maxsize=50_000)
def _sentences(text: str) -> tuple[tuple[str, frozenset[str]], ...]:
    return tuple((part, _stems(part)) for part in _SENTENCE.split(text) if part.strip())
