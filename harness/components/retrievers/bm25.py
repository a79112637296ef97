"""Lexical retrieval with scores computed at indexing time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from harness.components.component import Fraction, Positive
from harness.components.retrievers.index_cache import Latest
from harness.components.retrievers.term_counts import TermCounts, term_counts
from harness.components.roles import PartedIndex
from harness.components.text_analysis import Analyzer, Stemmer, StopWords
from harness.core.errors import ConfigError
from harness.core.rankings import Rankings, best_first
from harness.core.records import Floats, Ints, Vectors
from harness.storage.store import Artifact

Variant = Literal["lucene", "okapi"]

_REFERENCE: Latest[Any] = Latest()
_POSTINGS: "Latest[_Postings]" = Latest()


@dataclass(frozen=True)
class BM25(PartedIndex):
    """BM25 over stemmed words without stop words; a chunk that shares no word with the query is not retrieved.

    score(t, d) = idf(t) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * |d| / mean |d|)), Robertson & Zaragoza, The
    Probabilistic Relevance Framework, 2009. `variant: lucene` has idf = ln(1 + (N - n + 0.5) / (n + 0.5)) and leaves
    out the constant factor k1 + 1, which changes no ranking; `okapi` is rank_bm25's BM25Okapi: idf = ln((N - n + 0.5)
    / (n + 0.5)), where negative a quarter of the mean idf. Each query word counts as often as it occurs in the query.
    Scores are computed when the corpus is indexed, part by part, and memory-mapped when it is searched. `engine:
    rank_bm25` lets that library do it, slowly and in memory, with the same ranking.
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
        if self.engine == "rank_bm25":
            return Artifact(data=list(map(Analyzer(self.stemmer, self.stop_words), texts)))
        return super().index(texts)

    @property
    def in_parts(self) -> PartedIndex | None:
        """This retriever, unless rank_bm25 holds the words of all chunks in memory."""
        return self if self.engine == "arrays" else None

    def index_part(self, texts: Sequence[str]) -> Artifact:
        """Count the words of each chunk; see `TermCounts`."""
        return term_counts(map(Analyzer(self.stemmer, self.stop_words), texts))

    def joined(self, parts: Sequence[Artifact]) -> Artifact:
        """Return chunks and scores by term, those of term t in `[offsets[t]:offsets[t + 1]]`, and the terms."""
        counts = TermCounts(parts)
        idf = _IDF[self.variant](counts.found_in, counts.chunks)
        mean_length = counts.lengths.mean() if counts.chunks else 0.0

        def scores(terms: Ints, times: Floats, lengths: Floats) -> Floats:
            saturated: Floats = times / (self.k1 * (1 - self.b + self.b * lengths / mean_length) + times)
            return idf[terms] * saturated * (1.0 if self.variant == "lucene" else self.k1 + 1)

        return counts.postings(scores)

    def search(
        self, index: Artifact, corpus: Vectors | None, texts: Sequence[str], vectors: Vectors | None
    ) -> Rankings:
        analyze = Analyzer(self.stemmer, self.stop_words)
        if self.engine == "rank_bm25":
            reference = _REFERENCE.get((index,), (self.k1, self.b), lambda: _reference(index, self.k1, self.b))
            return Rankings.of([self._by_reference(reference, analyze(text)) for text in texts])
        postings = _POSTINGS.get((index,), None, lambda: _Postings(index))
        return Rankings.of([best_first(*postings.matches(analyze(text)), self.depth, decimals=9) for text in texts])

    def _by_reference(self, reference: Any, words: list[str]) -> tuple[Ints, Floats]:
        if reference is None:
            return np.empty(0, np.int64), np.empty(0)
        scores = np.asarray(reference.get_scores(words), np.float64)
        matched = np.flatnonzero([any(word in counts for word in words) for counts in reference.doc_freqs])
        return best_first(matched.astype(np.int64), scores[matched], self.depth, decimals=9)


def _lucene_idf(found_in: Ints, total: int) -> Floats:
    """Lucene's idf of terms that occur in so many of `total` chunks."""
    idf: Floats = np.log(1 + (total - found_in + 0.5) / (found_in + 0.5))
    return idf


def _okapi_idf(found_in: Ints, total: int) -> Floats:
    """rank_bm25's idf of terms that occur in so many of `total` chunks: where negative, a quarter of the mean idf."""
    idf = np.log((total - found_in + 0.5) / (found_in + 0.5))
    return np.where(idf < 0, 0.25 * idf.mean() if len(idf) else 0.0, idf)


_IDF = {"lucene": _lucene_idf, "okapi": _okapi_idf}


class _Postings:
    """The postings of an index, of which a search reads those of its words."""

    def __init__(self, index: Artifact) -> None:
        self._number = {word: at for at, word in enumerate(index.data)}
        self._chunks, self._scores, self._offsets = (index.arrays[name] for name in ("chunks", "scores", "offsets"))
        self._total = int(self._chunks.max(initial=-1)) + 1

    def matches(self, words: Sequence[str]) -> tuple[Ints, Floats]:
        """The chunks that have any of the words, even one that is too common to score (okapi), and their scores."""
        scores, found = np.zeros(self._total), np.zeros(self._total, np.bool_)
        for term in (self._number[word] for word in words if word in self._number):
            at = slice(self._offsets[term], self._offsets[term + 1])
            chunks = self._chunks[at]
            scores[chunks] += self._scores[at]
            found[chunks] = True
        matched = np.flatnonzero(found)
        return matched, scores[matched]


def _reference(index: Artifact, k1: float, b: float) -> Any:
    """rank_bm25 over the words of each chunk; None where no chunk has any, which it cannot index."""
    try:
        from rank_bm25 import BM25Okapi
    except ImportError as error:
        raise ConfigError("retriever bm25: rank_bm25 is missing; pip install 'retrieval-harness[adapters]'") from error
    return BM25Okapi(index.data, k1=k1, b=b) if any(index.data) else None
