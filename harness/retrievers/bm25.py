"""Lexical retrieval with scores computed at indexing time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from harness.component import Fraction, Positive, Retriever
from harness.model import Floats, Ints, Rankings, Vectors, best_first
from harness.retrievers.analysis import Analyzer, Stemmer, StopWords
from harness.store import Artifact

Variant = Literal["lucene", "okapi"]


@dataclass(frozen=True)
class BM25(Retriever):
    """BM25 over stemmed words without stop words; a chunk that shares no word with the query is not retrieved.

    score(t, d) = idf(t) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * |d| / mean |d|)), Robertson & Zaragoza, The
    Probabilistic Relevance Framework, 2009. `variant: lucene` has idf = ln(1 + (N - n + 0.5) / (n + 0.5)) and leaves
    out the constant factor k1 + 1, which changes no ranking; `okapi` is rank_bm25's BM25Okapi: idf = ln((N - n + 0.5)
    / (n + 0.5)), where negative a quarter of the mean idf. Each query word counts as often as it stands in the query.
    """

    depth: Positive = 50
    k1: Annotated[float, Field(ge=0)] = 0.9
    b: Fraction = 0.4
    variant: Variant = "lucene"
    stemmer: Stemmer = "porter"
    stop_words: StopWords = "lucene"

    def index(self, texts: Sequence[str]) -> Artifact:
        analyze = Analyzer(self.stemmer, self.stop_words)
        vocabulary: dict[str, int] = {}
        terms: list[int] = []
        counts: list[int] = []
        distinct = np.zeros(len(texts), np.int64)
        lengths = np.zeros(len(texts), np.int64)
        for chunk, text in enumerate(texts):
            words = Counter(analyze(text))
            terms += [vocabulary.setdefault(word, len(vocabulary)) for word in words]
            counts += words.values()
            distinct[chunk], lengths[chunk] = len(words), words.total()
        term, tf = np.array(terms, np.int64), np.array(counts, np.float64)
        chunks = np.repeat(np.arange(len(texts)), distinct)
        found_in = np.bincount(term, minlength=len(vocabulary))
        mean_length = lengths.mean() if lengths.any() else 1.0
        norm = self.k1 * (1 - self.b + self.b * lengths[chunks] / mean_length)
        scale = self.k1 + 1 if self.variant == "okapi" else 1.0
        scores = self._idf(found_in, len(texts))[term] * tf * scale / (tf + norm)
        by_term = np.argsort(term, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(found_in)])
        arrays: dict[str, Any] = {
            "chunks": chunks[by_term].astype(np.int32),
            "scores": scores[by_term],
            "offsets": offsets,
        }
        return Artifact(arrays, list(vocabulary))

    def _idf(self, found_in: Ints, total: int) -> Floats:
        odds = (total - found_in + 0.5) / (found_in + 0.5)
        if self.variant == "lucene":
            return np.log1p(odds)
        idf = np.log(odds)
        return np.where(idf < 0, 0.25 * idf.mean() if len(idf) else 0.0, idf)

    def search(
        self, index: Artifact, corpus: Vectors | None, texts: Sequence[str], vectors: Vectors | None
    ) -> Rankings:
        analyze = Analyzer(self.stemmer, self.stop_words)
        number = {word: at for at, word in enumerate(index.data)}
        return Rankings.of([self._rank(index.arrays, [number[w] for w in analyze(t) if w in number]) for t in texts])

    def _rank(self, index: Any, terms: list[int]) -> tuple[Ints, Floats]:
        offsets, chunks, scores = index["offsets"], index["chunks"], index["scores"]
        parts = [slice(offsets[term], offsets[term + 1]) for term in terms]
        if not parts:
            return np.empty(0, np.int64), np.empty(0)
        matched, at = np.unique(np.concatenate([chunks[part] for part in parts]), return_inverse=True)
        total: Floats = np.bincount(at, weights=np.concatenate([scores[part] for part in parts])).astype(np.float64)
        return best_first(matched.astype(np.int64), total, self.depth, decimals=9)
