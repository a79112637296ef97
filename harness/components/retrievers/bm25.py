"""Lexical retrieval with scores computed at indexing time."""

import warnings
from collections.abc import Mapping, Sequence
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

_NO_POSTINGS: Mapping[str, Any] = {
    "chunks": np.empty(0, np.int32),
    "scores": np.empty(0),
    "offsets": np.zeros(1, np.int64),
}


@dataclass(frozen=True)
class BM25(Retriever):
    """BM25 over stemmed words without stop words; a chunk that shares no word with the query is not retrieved.

    score(t, d) = idf(t) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * |d| / mean |d|)), Robertson & Zaragoza, The
    Probabilistic Relevance Framework, 2009. `variant: lucene` has idf = ln(1 + (N - n + 0.5) / (n + 0.5)) and leaves
    out the constant factor k1 + 1, which changes no ranking; `okapi` is rank_bm25's BM25Okapi: idf = ln((N - n + 0.5)
    / (n + 0.5)), where negative a quarter of the mean idf. Each query word counts as often as it occurs in the query.
    The library bm25s computes the scores when the corpus is indexed; `engine: rank_bm25` lets that library do it,
    slowly, with the same ranking.
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
        terms = [[vocabulary.setdefault(word, len(vocabulary)) for word in analyze(text)] for text in texts]
        # bm25s has no index of no words.
        postings = self._postings(terms, vocabulary) if vocabulary else _NO_POSTINGS
        return Artifact(postings, list(vocabulary))

    def _postings(self, terms: list[list[int]], vocabulary: dict[str, int]) -> Mapping[str, Any]:
        """Chunks and scores, by term: those of term t are `[offsets[t]:offsets[t + 1]]`."""
        engine = _bm25s().BM25(method="lucene", k1=self.k1, b=self.b, dtype="float64")
        engine.index((terms, vocabulary), create_empty_token=False, show_progress=False)
        chunks, scores, offsets = (engine.scores[name] for name in ("indices", "data", "indptr"))
        if self.variant == "okapi":
            found_in = np.diff(offsets)
            lucene = np.log1p((len(terms) - found_in + 0.5) / (found_in + 0.5))
            scores = scores * np.repeat(_okapi_idf(found_in, len(terms)) / lucene * (self.k1 + 1), found_in)
        return {"chunks": chunks.astype(np.int32), "scores": scores, "offsets": offsets.astype(np.int64)}

    def search(
        self, index: Artifact, corpus: Vectors | None, texts: Sequence[str], vectors: Vectors | None
    ) -> Rankings:
        analyze = Analyzer(self.stemmer, self.stop_words)
        if self.engine == "rank_bm25":
            reference = _REFERENCE.get((index,), (self.k1, self.b), lambda: _reference(index, self.k1, self.b))
            return Rankings.of([self._by_reference(reference, analyze(text)) for text in texts])
        number = _NUMBERS.get((index,), None, lambda: {word: at for at, word in enumerate(index.data)})
        engine = _engine(index)
        return Rankings.of([self._rank(engine, [number[w] for w in analyze(t) if w in number]) for t in texts])

    def _rank(self, engine: Any, terms: list[int]) -> tuple[Ints, Floats]:
        if not terms:
            return np.empty(0, np.int64), np.empty(0)
        chunks, offsets = engine.scores["indices"], engine.scores["indptr"]
        scores = engine.get_scores_from_ids(terms)
        # A chunk is found if it has a query word, even one that is too common to score (okapi).
        found = np.zeros(len(scores), np.bool_)
        for term in terms:
            found[chunks[offsets[term] : offsets[term + 1]]] = True
        matched = np.flatnonzero(found)
        return best_first(matched, scores[matched], self.depth, decimals=9)

    def _by_reference(self, reference: Any, words: list[str]) -> tuple[Ints, Floats]:
        if reference is None:
            return np.empty(0, np.int64), np.empty(0)
        scores = np.asarray(reference.get_scores(words), np.float64)
        matched = np.flatnonzero([any(word in counts for word in words) for counts in reference.doc_freqs])
        return best_first(matched.astype(np.int64), scores[matched], self.depth, decimals=9)


def _okapi_idf(found_in: Ints, total: int) -> Floats:
    """rank_bm25's idf of terms that occur in so many of `total` chunks: where negative, a quarter of the mean idf."""
    idf = np.log((total - found_in + 0.5) / (found_in + 0.5))
    return np.where(idf < 0, 0.25 * idf.mean() if len(idf) else 0.0, idf)


def _bm25s() -> Any:
    """The library; without tqdm's warning that a notebook lacks widgets, which nothing here uses."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="IProgress not found")
        import bm25s
    return bm25s


def _engine(index: Artifact) -> Any:
    """bm25s on the postings of an index."""
    engine = _bm25s().BM25(dtype="float64")
    chunks = index.arrays["chunks"]
    engine.scores = {
        "data": index.arrays["scores"],
        "indices": chunks,
        "indptr": index.arrays["offsets"],
        "num_docs": int(chunks.max(initial=-1)) + 1,
    }
    engine.nonoccurrence_array = None
    return engine


def _reference(index: Artifact, k1: float, b: float) -> Any:
    """rank_bm25 over the words of each chunk; None where no chunk has any, which it cannot index."""
    try:
        from rank_bm25 import BM25Okapi
    except ImportError as error:
        raise ConfigError("retriever bm25: rank_bm25 is missing; pip install 'retrieval-harness[adapters]'") from error
    return BM25Okapi(index.data, k1=k1, b=b) if any(index.data) else None
