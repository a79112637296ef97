"""The chunker role: cut a document into spans."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from harness.components.component import Component
from harness.core.records import Document, Spans, Vectors
from harness.llm.answers import Outcome as Answer
from harness.llm.prompter import Task


class CutRequest(NamedTuple):
    """What a chunker needs to know about a document before it can cut it.

    `pieces` are spans whose texts the harness embeds with the trial's embedder, `tasks` questions for the chunker's
    language model.
    """

    pieces: Spans
    tasks: Sequence[Task] = ()


class CutInputs(NamedTuple):
    """What the harness provides for a CutRequest.

    `vectors` has one unit vector per piece, (pieces, dimensions), and `answers` one answer or failure per task.
    """

    request: CutRequest
    vectors: Vectors | None = None
    answers: Sequence[Answer] = ()


class BaseChunker(Component):
    """The role of all chunkers; derive a new one from Chunker or one of its siblings."""

    role: ClassVar[str] = "chunker"
    uses_vectors: ClassVar[bool] = False
    """Whether it needs vectors of the pieces it requests; its chunks then depend on the embedder."""

    def request(self, doc: Document) -> CutRequest:
        """Return what must be known about the document; nothing unless the chunker uses a model."""
        return CutRequest([])

    @abstractmethod
    def cut(self, doc: Document, given: CutInputs) -> list[Spans]:
        """Return the spans of each scale, finest first; most chunkers have one scale."""


class Chunker(BaseChunker):
    """Cuts a document into spans."""

    @abstractmethod
    def split(self, doc: Document) -> Spans:
        """Return half-open `(start, end)` character offsets into `doc.text`; `doc.tokens` has the token positions."""

    def cut(self, doc: Document, given: CutInputs) -> list[Spans]:
        """Return what `split` returns, as the only scale."""
        return [self.split(doc)]


class ScalesChunker(Chunker):
    """Cuts a document at several scales; each chunk is tagged with its scale."""

    @abstractmethod
    def tilings(self, doc: Document) -> list[Spans]:
        """Return the spans of each scale, finest first."""

    def split(self, doc: Document) -> Spans:
        """Return the distinct spans of all scales, in order."""
        return sorted({span for spans in self.tilings(doc) for span in spans})

    def cut(self, doc: Document, given: CutInputs) -> list[Spans]:
        """Return what `tilings` returns."""
        return self.tilings(doc)


class EmbeddingChunker(BaseChunker):
    """Cuts a document by the vectors of its pieces; the harness embeds each piece once, with the trial's embedder."""

    uses_vectors: ClassVar[bool] = True

    @abstractmethod
    def pieces(self, doc: Document) -> Spans:
        """Return the spans to embed, in order."""

    @abstractmethod
    def join(self, doc: Document, pieces: Spans, vectors: Vectors) -> Spans:
        """Return the chunks; `vectors` has one unit vector per piece, (pieces, dimensions)."""

    def request(self, doc: Document) -> CutRequest:
        """Request the vectors of the pieces."""
        return CutRequest(self.pieces(doc))

    def cut(self, doc: Document, given: CutInputs) -> list[Spans]:
        """Return what `join` returns, as the only scale."""
        assert given.vectors is not None
        return [self.join(doc, given.request.pieces, given.vectors)]
