"""Statistics of a data set: counts, lengths, positions of evidence, types of queries."""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.core.records import Document, Query

POSITIONS = 10
"""Number of equal parts of a document by which positions of evidence are counted."""
_WORDS = ("what", "which", "who", "whose", "when", "where", "why", "how")
_BINS = 12


@dataclass(frozen=True)
class Spread:
    """A distribution of numbers: count, minimum, quartiles, 90th percentile, maximum and sum.

    `counts` are the counts of `_BINS` bins between `edges`, which grow by a constant factor. Without numbers, both are
    empty and the quantiles are NaN.
    """

    count: int
    min: float
    lower: float
    median: float
    upper: float
    p90: float
    max: float
    total: float
    counts: tuple[int, ...]
    edges: tuple[float, ...]

    @classmethod
    def of(cls, numbers: Iterable[float]) -> "Spread":
        """The distribution of these numbers."""
        found = np.fromiter(numbers, np.float64)
        if not len(found):
            nan = float("nan")
            return cls(0, nan, nan, nan, nan, nan, nan, 0.0, (), ())
        smallest, lower, median, upper, p90, largest = np.quantile(found, (0, 0.25, 0.5, 0.75, 0.9, 1)).tolist()
        low, high = max(1.0, smallest), max(2.0, largest + 1)
        edges = np.geomspace(low, high, _BINS + 1) if low < high else np.array([low, low + 1])
        counts, _ = np.histogram(np.maximum(found, low), edges)
        total = float(found.sum())
        return cls(
            len(found),
            smallest,
            lower,
            median,
            upper,
            p90,
            largest,
            total,
            tuple(counts.tolist()),
            tuple(edges.tolist()),
        )


@dataclass(frozen=True)
class QueryProfile:
    """Statistics of a query set: lengths of queries in words, of evidence in characters.

    `positions` counts evidence spans by the tenth of the document that contains their midpoint; `types` counts the
    values of `metadata.type`, `question_words` the words that questions begin with. Of the evidence items, `whole` are
    document-level, and `absent` those of them whose document is not in the corpus. `reviewed` is the number of queries
    of a synthetic set that people have reviewed.
    """

    name: str
    queries: int
    answerable: int
    words: Spread
    items: int
    items_per_query: Mapping[int, int]
    whole: int
    absent: int
    grades: Mapping[float, int]
    lengths: Spread
    positions: tuple[int, ...]
    documents: int
    types: Mapping[str, int]
    question_words: Mapping[str, int]
    locked: bool = False
    synthetic: bool = False
    reviewed: int = 0


@dataclass(frozen=True)
class CorpusProfile:
    """Statistics of the documents: lengths in words and characters, and distinct values per metadata key."""

    words: Spread
    characters: Spread
    titled: int
    metadata: Mapping[str, int]


def corpus_profile(documents: Iterable[Document]) -> CorpusProfile:
    """The statistics of a corpus, from one pass over its documents."""
    values: dict[str, set[str]] = {}
    words, characters, titled = array("q"), array("q"), 0
    for doc in documents:
        words.append(len(doc.text.split()))
        characters.append(len(doc.text))
        titled += bool(doc.title)
        for key, value in doc.metadata.items():
            values.setdefault(key, set()).add(str(value))
    distinct = {key: len(found) for key, found in values.items()}
    return CorpusProfile(Spread.of(words), Spread.of(characters), titled, distinct)


def query_profile(
    name: str,
    queries: Sequence[Query],
    documents: Mapping[str, Document],
    *,
    locked: bool = False,
    synthetic: bool = False,
) -> QueryProfile:
    """The statistics of a query set; of equivalent places of evidence, only the first one counts."""
    answerable = [query for query in queries if query.evidence]
    items = [item for query in answerable for item in query.evidence]
    spans = [item.places[0] for item in items if not item.whole]
    middles = [(place.start + place.end) / 2 / len(documents[place.doc].text) for place in spans]
    parts = Counter(min(POSITIONS - 1, int(POSITIONS * middle)) for middle in middles)
    return QueryProfile(
        name,
        len(queries),
        len(answerable),
        Spread.of(len(query.text.split()) for query in queries),
        len(items),
        dict(sorted(Counter(len(query.evidence) for query in answerable).items())),
        sum(item.whole for item in items),
        sum(item.absent for item in items),
        dict(sorted(Counter(item.grade for item in items).items())),
        Spread.of(place.end - place.start for place in spans),
        tuple(parts[at] for at in range(POSITIONS)) if spans else (),
        len({place.doc for item in items for place in item.places[:1]}),
        _by_count(str(query.metadata["type"]) for query in queries if query.metadata.get("type")),
        _by_count(map(_question_word, queries)),
        locked,
        synthetic,
        sum(_reviewed(query) for query in queries),
    )


def _reviewed(query: Query) -> bool:
    text = query.metadata.get("synthetic")
    return isinstance(text, dict) and bool(text.get("reviewed"))


def _by_count(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items(), key=lambda pair: (-pair[1], pair[0])))


def _question_word(query: Query) -> str:
    """The question word at the beginning of a query; without one, whether it ends with a question mark."""
    words = query.text.lower().replace("'", " ").split()
    found = next((word for word in words[:3] if word.strip(",?:") in _WORDS), "")
    return found.strip(",?:") or ("other question" if query.text.rstrip().endswith("?") else "no question")
