"""Lexical retrieval with scores computed at indexing time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from harness.components.component import Fraction, Positive
from harness.components.retrievers.index_cache import Latest
from harness.components.roles import Retriever
from harness.components.text_analysis import Analyzer, Stemmer, StopWords
from harness.core.errors import ConfigError
from harness.core.rankings import Rankings, best_first
from harness.core.records import Floats, Ints, Vectors
from harness.storage.store import Artifact

Variant = Literal["lucene", "okapi"]

_REFERENCE: Latest[Any] = Latest()
_NUMBERS: Latest[dict[str, int]] = Latest()


@dataclass(frozen=True)
class BM25(Retriever):
    """BM25 over stemmed words without stop words; a chunk that shares no word with the query is not retrieved.

    score(t, d) = idf(t) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * |d| / mean |d|)), Robertson & Zaragoza, The
    Probabilistic Relevance Framework, 2009. `variant: lucene` has idf = ln(1 + (N - n + 0.5) / (n + 0.5)) and leaves
    out the constant factor k1 + 1, which changes no ranking; `okapi` is rank_bm25's BM25Okapi: idf = ln((N - n + 0.5)
    / (n + 0.5)), where negative a quarter of the mean idf. Each query word counts as often as it stands in the query.
    `engine: rank_bm25` has that library do it, slowly, with the same ranking.
    """

    depth: Positive = 50
    k1: Annotated[float, Field(ge=0)] = 0.9
    b: Fraction = 0.4
    variant: Variant = "lucene"
    stemmer: Stemmer = "porter"
    stop_words: StopWords = "lucene"
    engine: Literal["arrays", "rank_bm25"] = "arrays"

    def packages(self) -> dict[str, str]:
        return {"rank_bm25": "adapters"} if self.engine == "rank_bm25" else {}

    def problem(self) -> str | None:
        if self.engine == "rank_bm25" and self.variant != "okapi":
            return "engine rank_bm25 has no variant but okapi; set `variant: okapi`"
        return None

    def index(self, texts: Sequence[str], corpus: Vectors | None = None) -> Artifact:
        analyze = Analyzer(self.stemmer, self.stop_words)
        if self.engine == "rank_bm25":
            return Artifact(data=[analyze(text) for text in texts])
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
        if self.engine == "rank_bm25":
            reference = _REFERENCE.get((index,), (self.k1, self.b), lambda: _reference(index, self.k1, self.b))
            return Rankings.of([self._by_reference(reference, analyze(text)) for text in texts])
        number = _NUMBERS.get((index,), None, lambda: {word: at for at, word in enumerate(index.data)})
        return Rankings.of([self._rank(index.arrays, [number[w] for w in analyze(t) if w in number]) for t in texts])

    def _rank(self, index: Any, terms: list[int]) -> tuple[Ints, Floats]:
        offsets, chunks, scores = index["offsets"], index["chunks"], index["scores"]
        parts = [slice(offsets[term], offsets[term + 1]) for term in terms]
        if not parts:
            return np.empty(0, np.int64), np.empty(0)
        matched, at = np.unique(np.concatenate([chunks[part] for part in parts]), return_inverse=True)
        total: Floats = np.bincount(at, weights=np.concatenate([scores[part] for part in parts])).astype(np.float64)
        return best_first(matched.astype(np.int64), total, self.depth, decimals=9)

    def _by_reference(self, reference: Any, words: list[str]) -> tuple[Ints, Floats]:
        if reference is None:
            return np.empty(0, np.int64), np.empty(0)
        scores = np.asarray(reference.get_scores(words), np.float64)
        matched = np.flatnonzero([any(word in counts for word in words) for counts in reference.doc_freqs])
        return best_first(matched.astype(np.int64), scores[matched], self.depth, decimals=9)


def _reference(index: Artifact, k1: float, b: float) -> Any:
    """rank_bm25 over the words of each chunk; None where no chunk has any, which it cannot index."""
    try:
        from rank_bm25 import BM25Okapi
    except ImportError as error:
        raise ConfigError("retriever bm25: rank_bm25 is missing; pip install 'retrieval-harness[adapters]'") from error
    return BM25Okapi(index.data, k1=k1, b=b) if any(index.data) else None
