"""The records that all other modules share: documents, evidence, queries, chunks, hits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Vectors = npt.NDArray[np.float32]

Spans = list[tuple[int, int]]
"""The return value of a chunker: half-open `(start, end)` character offsets into one document."""

BETWEEN = "\n\n"
"""Separates a chunk's context from its text in the indexed text."""


class Span(NamedTuple):
    """A half-open span of one document, in Python character offsets."""

    doc: str
    start: int
    end: int


class Returned(NamedTuple):
    """What another system says of a passage: its text, and perhaps the id of its document and character offsets."""

    text: str
    doc: str | None = None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, eq=False)
class TokenMap:
    """Where the tokens of one document start; the token count of any span then takes two binary searches.

    `starts` holds one character offset per token, (tokens,), in non-decreasing order. A token belongs to the character
    it starts in, so token counts of adjacent spans add up and a cut always falls between characters.
    """

    starts: Ints

    def count(self, start: int, end: int) -> int:
        """The number of tokens that start inside `[start, end)`."""
        lo, hi = np.searchsorted(self.starts, (start, end))
        return int(hi - lo)

    def counts(self, starts: Ints, ends: Ints) -> Ints:
        """`count` for many spans at once; both arguments and the result have shape (n,)."""
        return np.searchsorted(self.starts, ends) - np.searchsorted(self.starts, starts)

    def end_of(self, start: int, tokens: int) -> int | None:
        """The largest offset such that `[start, offset)` has at most `tokens` tokens; None for the end of the text."""
        at = int(np.searchsorted(self.starts, start)) + tokens
        return int(self.starts[at]) if at < len(self.starts) else None


@dataclass(frozen=True)
class Document:
    """One text of the corpus. The harness sets `tokens` before a chunker gets the document."""

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tokens: TokenMap | None = field(default=None, compare=False, repr=False)

    def token_map(self) -> TokenMap:
        """`tokens`, for chunkers that measure in tokens. Raises ValueError if the harness has not set it."""
        if self.tokens is None:
            raise ValueError(f"document '{self.id}' has not been tokenized")
        return self.tokens


@dataclass(frozen=True)
class Evidence:
    """One item of evidence that a query needs, found at any one of its equivalent `places`.

    The first place is the one the data set names; the others are equivalents (`also` in the data set, and verbatim
    copies found at load time). `whole` marks document-level evidence, whose places are entire documents. `absent` marks
    document-level evidence that is missing from the corpus: judged relevant, but impossible to find.
    """

    places: tuple[Span, ...]
    grade: float = 1.0
    whole: bool = False
    absent: bool = False


@dataclass(frozen=True)
class Query:
    """A question and what is known about its answer. A query without evidence has no answer in the corpus.

    Documents to `ignore` are never retrieved for this query, such as a document that is the query itself. `irrelevant`
    documents were judged not relevant; `unjudged` documents were in the judgment pool but not judged.
    """

    id: str
    text: str
    evidence: tuple[Evidence, ...] = ()
    answer: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    irrelevant: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()

    @property
    def by_document(self) -> bool:
        """Whether the evidence is document-level; a query never mixes document-level and span evidence."""
        return bool(self.evidence) and self.evidence[0].whole

    @property
    def cluster(self) -> str:
        """The resampling unit: `metadata.group`, else the document of the first evidence item, else the query."""
        if self.metadata.get("group") is not None:
            return str(self.metadata["group"])
        return self.evidence[0].places[0].doc if self.evidence else f"query:{self.id}"


@dataclass(frozen=True)
class Chunk:
    """A span of a document as the retriever sees it; `text == document.text[start:end]` always holds.

    `context` is text added by an augmenter: it is indexed and counted in tokens, but never credited as evidence.
    `tokens` counts context and text. `scale` is 0 for the finest scale of a multi-scale chunker, and 0 for all other
    chunkers. `vector` is the unit vector of `indexed`, (dimensions,), if a step of the trial uses vectors.
    """

    doc: str
    start: int
    end: int
    text: str
    context: str = ""
    tokens: int = 0
    context_tokens: int = 0
    scale: int = 0
    document: Document | None = field(default=None, compare=False, repr=False)
    vector: Vectors | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, document: Document, start: int, end: int) -> "Chunk":
        """The chunk of a document between two character offsets, without tokens."""
        return cls(document.id, start, end, document.text[start:end], document=document)

    @property
    def id(self) -> str:
        """`document:start-end`."""
        return f"{self.doc}:{self.start}-{self.end}"

    @property
    def indexed(self) -> str:
        """The text that retrievers and rerankers see: context and text."""
        return indexed_text(self.context, self.text)

    def known_document(self) -> Document:
        """`document`. Raises ValueError if the chunk does not know it."""
        if self.document is None:
            raise ValueError(f"chunk {self.id} does not know its document")
        return self.document

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of the document; empty if the chunk does not know its document."""
        return self.document.metadata if self.document else {}

    def cut(self, tokens: int) -> "Chunk | None":
        """This chunk cut to at most `tokens` tokens including its context; None if no text is left."""
        if self.tokens <= tokens:
            return self
        token_map = self.document.tokens if self.document else None
        end = token_map.end_of(self.start, tokens - self.context_tokens) if token_map else None
        if end is None or end <= self.start or tokens <= self.context_tokens:
            return None
        # Can be fewer than `tokens`: several tokens may share a character.
        left = self.context_tokens + token_map.count(self.start, end) if token_map else tokens
        return replace(self, end=end, text=self.text[: end - self.start], tokens=left, vector=None)


def indexed_text(context: str, text: str) -> str:
    """A chunk's context and text joined as they are indexed; the text alone if the context is empty."""
    return f"{context}{BETWEEN}{text}" if context else text


def spanning(chunks: Sequence[Chunk]) -> Chunk:
    """One chunk from the first to the last character of chunks of one document, with their distinct contexts.

    Raises ValueError if the chunks do not know their document.
    """
    first, document = chunks[0], chunks[0].known_document()
    start, end = min(chunk.start for chunk in chunks), max(chunk.end for chunk in chunks)
    contexts = {chunk.context: chunk.context_tokens for chunk in chunks if chunk.context}
    extra = sum(contexts.values())
    return replace(
        first,
        start=start,
        end=end,
        text=document.text[start:end],
        context="\n".join(contexts),
        tokens=document.token_map().count(start, end) + extra,
        context_tokens=extra,
        vector=None,
    )


@dataclass(frozen=True)
class Case:
    """A judge's input for one query: the query, the text of each evidence item, and the passages in rank order.

    `claims` are the statements of the reference answer, if a judge needs them; None if they are not known.
    """

    query: Query
    evidence: tuple[str, ...]
    passages: tuple[Chunk, ...]
    claims: tuple[str, ...] | None = None


class Hit(NamedTuple):
    """A retrieved chunk with its score (higher is better)."""

    chunk: Chunk
    score: float


class Drop(NamedTuple):
    """A hit that a selector step did not keep, and the reason in a few words."""

    hit: Hit
    reason: str


class Outcome(NamedTuple):
    """The output of one selector step: the hits kept, in rank order, and the hits dropped."""

    kept: list[Hit]
    dropped: list[Drop]


class Embedded(NamedTuple):
    """Vectors, (texts, dimensions) float32, and whether each text was truncated by the model, (texts,)."""

    vectors: Vectors
    truncated: npt.NDArray[np.bool_]


class Corpus(Protocol):
    """All chunks of a corpus, ordered by document and start, as arrays of shape (chunks,), with the indexed texts."""

    doc: Ints
    start: Ints
    end: Ints
    tokens: Ints
    scale: Ints

    @property
    def texts(self) -> Sequence[str]:
        """The indexed text of each chunk."""

    def count(self, doc: int, start: int, end: int) -> int:
        """The number of tokens in a span of document number `doc`."""

    def blank(self, doc: int, start: int, end: int) -> bool:
        """Whether a span of document number `doc` contains only white space."""
