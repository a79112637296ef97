"""The records everything else passes around: documents, evidence, queries, chunks, hits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Vectors = npt.NDArray[np.float32]

Spans = list[tuple[int, int]]
"""What a chunker returns: half-open `(start, end)` character offsets into one document."""

BETWEEN = "\n\n"
"""Stands between a chunk's context and its text in what is indexed."""


class Span(NamedTuple):
    """A half-open stretch of one document, in Python character offsets."""

    doc: str
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class TokenMap:
    """Where the tokens of one document start, so that the token length of any span is two binary searches.

    `starts` holds one character offset per token, not decreasing. A token belongs to the character it starts in: token
    counts of adjacent spans therefore add up, and a cut always falls between characters.
    """

    starts: Ints

    def count(self, start: int, end: int) -> int:
        """Tokens that start inside `[start, end)`."""
        lo, hi = np.searchsorted(self.starts, (start, end))
        return int(hi - lo)

    def counts(self, starts: Ints, ends: Ints) -> Ints:
        """`count` for many spans at once; both arguments and the result have shape (n,)."""
        return np.searchsorted(self.starts, ends) - np.searchsorted(self.starts, starts)

    def end_of(self, start: int, tokens: int) -> int | None:
        """The greatest offset such that `[start, offset)` holds at most `tokens` tokens; None for "to the end"."""
        at = int(np.searchsorted(self.starts, start)) + tokens
        return int(self.starts[at]) if at < len(self.starts) else None


@dataclass(frozen=True)
class Document:
    """One text of the corpus. `tokens` is set by the harness before a chunker sees the document."""

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tokens: TokenMap | None = field(default=None, compare=False, repr=False)

    def token_map(self) -> TokenMap:
        """`tokens`, for chunkers that measure in tokens; raises ValueError where the harness has not set it."""
        if self.tokens is None:
            raise ValueError(f"document '{self.id}' has not been tokenized")
        return self.tokens


@dataclass(frozen=True)
class Evidence:
    """One thing a query needs, found at any one of its equivalent `places`.

    The first place is the one the data set names; the others are equivalents (`also` in the data set, and verbatim
    copies found at load). `whole` marks document evidence: its places are whole documents. `absent` marks such evidence
    whose documents the corpus lacks: judged relevant, and never to be found.
    """

    places: tuple[Span, ...]
    grade: float = 1.0
    whole: bool = False
    absent: bool = False


@dataclass(frozen=True)
class Query:
    """A question with what is known about its answer. No evidence means: the corpus holds no answer.

    Documents to `ignore` are never retrieved for it, such as the document that the query itself is. `irrelevant` ones
    were judged and found so; `unjudged` ones were put before the judges, and not judged.
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
        """Whether the evidence is whole documents; a query never mixes both kinds."""
        return bool(self.evidence) and self.evidence[0].whole

    @property
    def cluster(self) -> str:
        """The unit of resampling: `metadata.group`, else the document of the first evidence item, else the query."""
        if self.metadata.get("group") is not None:
            return str(self.metadata["group"])
        return self.evidence[0].places[0].doc if self.evidence else f"query:{self.id}"


@dataclass(frozen=True)
class Chunk:
    """A stretch of a document as the retriever sees it; `text == document.text[start:end]` always holds.

    `context` is what an augmenter adds: indexed and counted in tokens, never credited as evidence. `tokens` counts
    both. `scale` counts from 0, the finest, where a chunker cuts at several. `vector` is the unit vector of `indexed`,
    (dimensions,), where a step of the trial uses vectors.
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

    @property
    def id(self) -> str:
        return f"{self.doc}:{self.start}-{self.end}"

    @property
    def indexed(self) -> str:
        """What retrievers and rerankers see: context and text."""
        return indexed_text(self.context, self.text)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What is known about the document."""
        return self.document.metadata if self.document else {}

    def cut(self, tokens: int) -> "Chunk | None":
        """This chunk cut to at most `tokens` tokens, its context included; None where no text is left."""
        if self.tokens <= tokens:
            return self
        token_map = self.document.tokens if self.document else None
        end = token_map.end_of(self.start, tokens - self.context_tokens) if token_map else None
        if end is None or end <= self.start or tokens <= self.context_tokens:
            return None
        # Fewer than asked for where several tokens share a character.
        left = self.context_tokens + token_map.count(self.start, end) if token_map else tokens
        return replace(self, end=end, text=self.text[: end - self.start], tokens=left, vector=None)


def indexed_text(context: str, text: str) -> str:
    """A context and the text it stands before, as they are indexed together."""
    return f"{context}{BETWEEN}{text}" if context else text


def spanning(chunks: Sequence[Chunk]) -> Chunk:
    """The passage from the first to the last character of chunks of one document, with their distinct contexts.

    Raises ValueError where the chunks do not know their document.
    """
    first = chunks[0]
    if first.document is None:
        raise ValueError(f"chunk {first.id} does not know its document")
    start, end = min(chunk.start for chunk in chunks), max(chunk.end for chunk in chunks)
    contexts = {chunk.context: chunk.context_tokens for chunk in chunks if chunk.context}
    extra = sum(contexts.values())
    return replace(
        first,
        start=start,
        end=end,
        text=first.document.text[start:end],
        context="\n".join(contexts),
        tokens=first.document.token_map().count(start, end) + extra,
        context_tokens=extra,
        vector=None,
    )


@dataclass(frozen=True)
class Case:
    """What a judge sees of one query: the query, the text of each item of its evidence, and the passages in rank order.

    `claims` are the statements of the reference answer where a judge asks for them; None where they are not known.
    """

    query: Query
    evidence: tuple[str, ...]
    passages: tuple[Chunk, ...]
    claims: tuple[str, ...] | None = None


class Hit(NamedTuple):
    """A retrieved chunk with its score (greater is better)."""

    chunk: Chunk
    score: float


class Drop(NamedTuple):
    """A hit that a selector step did not keep, and why, in a few words."""

    hit: Hit
    reason: str


class Outcome(NamedTuple):
    """What one selector step made of its input: hits kept, in rank order, and hits dropped."""

    kept: list[Hit]
    dropped: list[Drop]


class Embedded(NamedTuple):
    """Vectors, (texts, dimensions) float32, and whether the model saw only the beginning of each text, (texts,)."""

    vectors: Vectors
    truncated: npt.NDArray[np.bool_]


class Corpus(Protocol):
    """All chunks of a corpus, ordered by document and start, as arrays of shape (chunks,), and what is indexed."""

    doc: Ints
    start: Ints
    end: Ints
    tokens: Ints
    scale: Ints

    @property
    def texts(self) -> Sequence[str]: ...

    def count(self, doc: int, start: int, end: int) -> int:
        """The tokens of a stretch of document number `doc`."""

    def blank(self, doc: int, start: int, end: int) -> bool:
        """Whether a stretch of document number `doc` is nothing but white space."""
