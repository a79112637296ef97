"""The retriever role: rank chunks for queries."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from harness.components.component import Component, settings
from harness.core.blame import blamed
from harness.core.plurals import plural
from harness.core.rankings import Rankings, Row
from harness.core.records import Corpus, Floats, Ints, Vectors
from harness.storage.store import Artifact

Scale = Literal["unit", "cosine", "raw"]
"""The kind of scores: between 0 and 1; cosines; or of unknown range, such as BM25's."""


@dataclass(frozen=True, eq=False)
class SearchInputs:
    """What the harness provides to a retriever for a number of queries.

    `ids` and `texts` are those of the queries. `index` is what the retriever's `index` returned. `corpus_vectors` has
    one vector per chunk, (chunks, dimensions), `query_vectors` one per query, (queries, dimensions); both are None
    unless the retriever sets `uses_vectors`. `parts` are the rankings of its `parts`, `run_file` is the file of its
    `run`, and `first_chunks` returns the first chunk of each document, by document id. `opened` is the index in a
    vector database, `located` what another system returned.
    """

    ids: Sequence[str]
    texts: Sequence[str]
    index: Artifact
    corpus: Corpus
    corpus_vectors: Vectors | None = None
    query_vectors: Vectors | None = None
    parts: Sequence[Rankings] = ()
    run_file: Path | None = None
    first_chunks: Callable[[], Mapping[str, int]] = dict
    opened: Any = None
    located: Rankings | None = None

    def only(self, query: int) -> "SearchInputs":
        """Return the inputs of one query; its parts are the same rankings, reduced to it."""
        vectors = None if self.query_vectors is None else self.query_vectors[query : query + 1]
        parts = [ranked.only(query) for ranked in self.parts]
        at = slice(query, query + 1)
        return replace(self, ids=self.ids[at], texts=self.texts[at], query_vectors=vectors, parts=parts)


class BaseRetriever(Component):
    """The role of all retrievers; derive a new one from Retriever, Fusion or Replay."""

    role: ClassVar[str] = "retriever"
    unit_vectors: ClassVar[bool] = False
    """Whether the vectors it gets must have unit length."""
    timed: ClassVar[bool] = True
    """Whether its latency is that of a search and worth reporting."""
    depth: int

    @property
    def uses_vectors(self) -> bool:
        """Whether it needs vectors of chunks and queries; a class may set the attribute instead."""
        return False

    @property
    def holds_vectors(self) -> bool:
        """Whether a search needs the vectors of all chunks in memory, or of those of a part: see `searches_parts`."""
        return self.uses_vectors

    @property
    def database(self) -> "DatabaseRetriever | None":
        """This retriever if a vector database has its index; else None."""
        return None

    @property
    def system(self) -> Any:
        """This retriever, a PassageRetriever, if it returns passages instead of the chunks of the trial; else None."""
        return None

    @property
    def scale(self) -> Scale:
        """The kind of scores it returns."""
        return "raw"

    @property
    def parts(self) -> "tuple[BaseRetriever, ...]":
        """The retrievers that a fusion merges; empty for a retriever that searches an index itself."""
        return ()

    @property
    def recorded(self) -> str | None:
        """The name of the run, in the data set's manifest, that it reads its rankings from; None if it searches."""
        return None

    @property
    def indexes(self) -> bool:
        """Whether it needs an index besides the vectors."""
        return False

    @property
    def in_parts(self) -> "PartedIndex | None":
        """This retriever if its index can be built of parts of the corpus; else None."""
        return None

    @property
    def searches_parts(self) -> bool:
        """Whether parts of a large corpus can be searched alone: the score of a chunk depends on no other chunk.

        The harness then searches part by part, each with its own vectors, and merges what is found; ties must be in
        chunk order. What `index` returns must be empty.
        """
        return False

    def index_settings(self) -> dict[str, Any]:
        """The settings that decide the index; trials that differ only in other settings share it."""
        return {name: value for name, value in settings(self).items() if name != "depth"}

    def index(self, texts: Sequence[str], corpus: Vectors | None = None) -> Artifact:
        """Build what a search needs besides vectors.

        `texts` are the chunks; `corpus` has one vector per chunk, (chunks, dimensions), or is None unless
        `uses_vectors` is true.
        """
        return Artifact()

    def exact(self) -> "BaseRetriever | None":
        """For approximate search: the exact retriever that its recall is measured against; else None."""
        return None

    @abstractmethod
    def rank(self, given: SearchInputs) -> Rankings:
        """Rank chunks for all queries: at most `depth` chunk numbers per query, best first."""


class Retriever(BaseRetriever):
    """Ranks chunks for queries; `search` returns at most `depth` chunk numbers per query, best first."""

    @property
    def indexes(self) -> bool:
        """Always true; the index may be empty."""
        return True

    @abstractmethod
    def search(
        self, index: Artifact, corpus: Vectors | None, texts: Sequence[str], vectors: Vectors | None
    ) -> Rankings:
        """Rank chunks for all queries in one call.

        `texts` are the queries. `corpus` has one vector per chunk, (chunks, dimensions), and `vectors` one per query,
        (queries, dimensions); both are None unless `uses_vectors` is true.
        """

    def rank(self, given: SearchInputs) -> Rankings:
        """Return what `search` returns."""
        asked = list(given.texts)
        with blamed(self, f"retriever {self.name()}: {plural(len(asked), 'query')}", asked):
            return self.search(given.index, given.corpus_vectors, asked, given.query_vectors)


class PartedIndex(Retriever):
    """A retriever without vectors whose index can be built of parts of the corpus: none must hold all texts at once."""

    @abstractmethod
    def index_part(self, texts: Sequence[str]) -> Artifact:
        """Return what the index needs to know about a part of the corpus; `texts` are its chunks."""

    @abstractmethod
    def joined(self, parts: Sequence[Artifact]) -> Artifact:
        """Return the index, of the artifacts of all parts in corpus order."""

    @property
    def in_parts(self) -> "PartedIndex | None":
        """This retriever."""
        return self

    def index(self, texts: Sequence[str], corpus: Vectors | None = None) -> Artifact:
        """Return the index of a corpus of one part."""
        return self.joined([self.index_part(texts)])


class Batch(NamedTuple):
    """Consecutive chunks to index: numbers and texts, (chunks,), and vectors, (chunks, dimensions).

    `vectors` is None unless the retriever sets `uses_vectors`.
    """

    numbers: Ints
    texts: list[str]
    vectors: Vectors | None


class IndexPlace(NamedTuple):
    """Where an index is: its name in the database, and the folder for a database that has no address of its own.

    The name has letters, digits and underscores, and is unique to everything that decides the index.
    """

    name: str
    folder: Path


class DatabaseRetriever(BaseRetriever):
    """A retriever that has a vector database index the chunks and search them.

    All methods raise HarnessError, in one line, if the database cannot be used.
    """

    @property
    def database(self) -> "DatabaseRetriever | None":
        """This retriever."""
        return self

    @property
    def where(self) -> str:
        """The address of the database without credentials; empty if it is in the store."""
        return ""

    @property
    def indexes(self) -> bool:
        """Always true."""
        return True

    @property
    def holds_vectors(self) -> bool:
        """Always false: the database does."""
        return False

    @abstractmethod
    def build(self, place: IndexPlace, batches: Iterator[Batch]) -> int | None:
        """Index chunks, in place of what a killed build has left.

        Return the size of the index in bytes; None if the database does not report it.
        """

    @abstractmethod
    def is_built(self, place: IndexPlace, chunks: int) -> bool:
        """Whether the index is there with so many chunks."""

    @abstractmethod
    def drop(self, place: IndexPlace) -> None:
        """Remove the index, if it is there."""

    @abstractmethod
    def opened(self, place: IndexPlace) -> AbstractContextManager[Any]:
        """Open the index for searching."""

    @abstractmethod
    def nearest(self, opened: Any, texts: list[str], vectors: Vectors | None) -> Rankings:
        """Rank chunks in an opened index for all queries; `texts` are theirs, `vectors` (queries, dimensions)."""

    def rank(self, given: SearchInputs) -> Rankings:
        """Return what `nearest` returns; nothing if there is no chunk, and so no index."""
        if given.opened is None:
            return Rankings.of([(np.empty(0, np.int64), np.empty(0)) for _ in given.texts])
        return self.nearest(given.opened, list(given.texts), given.query_vectors)


class Replay(BaseRetriever):
    """A retriever that reads its rankings from a file, listed as a `run` in the data set's manifest."""

    timed: ClassVar[bool] = False
    run: str

    @property
    def recorded(self) -> str | None:
        """The run's name in the manifest."""
        return self.run

    @abstractmethod
    def replay(self, path: Path, queries: Sequence[str], first: Mapping[str, int]) -> Rankings:
        """Read the rankings for query ids, in their order; `first` maps each document id to its first chunk."""

    def rank(self, given: SearchInputs) -> Rankings:
        """Return what `replay` returns."""
        assert given.run_file is not None
        return self.replay(given.run_file, given.ids, given.first_chunks())


class FusionContext(NamedTuple):
    """The inputs of a fusion besides the rankings: one query, the result of its own `index`, and the corpus.

    `vector` has shape (dimensions,) and `vectors` (chunks, dimensions), both of unit length; both are None unless the
    fusion itself sets `uses_vectors`.
    """

    query: str
    own: Artifact
    corpus: Corpus
    vector: Vectors | None = None
    vectors: Vectors | None = None


class Fusion(BaseRetriever):
    """A retriever that merges the rankings of its parts; each part is searched and stored separately."""

    unit_vectors: ClassVar[bool] = True

    @property
    @abstractmethod
    def parts(self) -> tuple[BaseRetriever, ...]:
        """The retrievers whose rankings are merged."""

    @property
    def indexes(self) -> bool:
        """Whether the fusion has an `index` of its own."""
        return type(self).index is not BaseRetriever.index

    @abstractmethod
    def fuse(self, rankings: Sequence[tuple[Ints, Floats]], searched: FusionContext) -> Row:
        """Merge the parts' hits for one query, `(chunk numbers, scores)` each, into one ranking, best first."""

    def rank(self, given: SearchInputs) -> Rankings:
        """Return what `fuse` returns for each query."""
        rows = []
        for at, (query, text) in enumerate(zip(given.ids, given.texts, strict=True)):
            vector = None if given.query_vectors is None else given.query_vectors[at]
            searched = FusionContext(text, given.index, given.corpus, vector, given.corpus_vectors)
            with blamed(self, f"retriever {self.name()}: query '{query}'"):
                rows.append(self.fuse([ranked.row(at) for ranked in given.parts], searched))
        return Rankings.of(rows)
