"""What a data set looks like: counts, lengths, where evidence lies, what kinds of queries there are."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.core.records import Document, Query

POSITIONS = 10
"""Parts of a document in which evidence is counted."""
_WORDS = ("what", "which", "who", "whose", "when", "where", "why", "how")
_BINS = 12


@dataclass(frozen=True)
class Spread:
    """How numbers are distributed: how many, the least, quartiles and 90th percentile, the most, and their sum.

    `counts` are those of `_BINS` bins between `edges`, which grow by a constant factor; both are empty for no numbers.
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
        found = np.array(list(numbers), np.float64)
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
    """A query set: lengths in words, evidence in characters.

    `positions` counts spans of evidence by the tenth of the document in which their middle lies; `types` are those the
    data name, `question_words` the words questions begin with. Of the items, `whole` are whole documents, and `absent`
    those of them that the corpus lacks. `reviewed` queries of a synthetic set have been looked at by people.
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
    """The documents: lengths in words and in characters, and how many values each key of their metadata has."""

    words: Spread
    characters: Spread
    titled: int
    metadata: Mapping[str, int]


def corpus_profile(documents: Sequence[Document]) -> CorpusProfile:
    """What the documents look like."""
    values: dict[str, set[str]] = {}
    for doc in documents:
        for key, value in doc.metadata.items():
            values.setdefault(key, set()).add(str(value))
    return CorpusProfile(
        Spread.of(len(doc.text.split()) for doc in documents),
        Spread.of(len(doc.text) for doc in documents),
        sum(bool(doc.title) for doc in documents),
        {key: len(found) for key, found in values.items()},
    )


def query_profile(
    name: str,
    queries: Sequence[Query],
    documents: Mapping[str, Document],
    *,
    locked: bool = False,
    synthetic: bool = False,
) -> QueryProfile:
    """What a query set looks like; evidence by the place that the data name."""
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
        _by_count(map(_asking, queries)),
        locked,
        synthetic,
        sum(_reviewed(query) for query in queries),
    )


def _reviewed(query: Query) -> bool:
    text = query.metadata.get("synthetic")
    return isinstance(text, dict) and bool(text.get("reviewed"))


def _by_count(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items(), key=lambda pair: (-pair[1], pair[0])))


def _asking(query: Query) -> str:
    """The first question word of a query; else whether it is a question at all."""
    words = query.text.lower().replace("'", " ").split()
    found = next((word for word in words[:3] if word.strip(",?:") in _WORDS), "")
    return found.strip(",?:") or ("other question" if query.text.rstrip().endswith("?") else "no question")
