"""The chunk stage, and what chunkers need of models before it: vectors of pieces, answers about boundaries."""

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from harness.components.component import identity
from harness.components.llm_roles import few_enough
from harness.components.roles import BaseChunker, CutInputs, CutRequest, Embedder
from harness.core.blame import blamed
from harness.core.errors import ConfigError
from harness.core.memory import require_memory
from harness.core.plurals import plural
from harness.core.rankings import unit_rows
from harness.core.records import Document, Ints, Spans, Vectors
from harness.llm import Outcome as Answer
from harness.llm import Task, stored
from harness.running.stages.ask import AskStage
from harness.running.stages.embed import EmbedStage
from harness.running.stages.model_access import Questions
from harness.running.stages.spans import SpansStage
from harness.running.stages.stage import PartStage, Stage
from harness.running.stages.tokenize import Tokenize, part_of
from harness.running.stages.workspace import Workspace
from harness.storage.store import Artifact, Key

_COLUMNS = ("doc", "start", "end", "tokens", "scale")

_HELD = 8
"""Bytes in memory per character of a corpus whose documents, pieces and vectors or answers are held at once."""


@dataclass(frozen=True, eq=False)
class Chunk(SpansStage):
    """Cuts the corpus into chunks. `embedder` is None unless vectors decide where to cut.

    A large corpus is cut in several `parts`, which are stages of their own. They do not change the output.
    """

    tokens: Tokenize
    chunker: BaseChunker
    embedder: Embedder | None
    parts: int = 1

    @cached_property
    def key(self) -> Key:
        """The corpus, the tokenizer and the chunker."""
        embedder = {"embedder": identity(self.embedder)} if self.embedder else {}
        return {**self.tokens.key, "stage": "chunk", "chunker": identity(self.chunker), **embedder}

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The tokens, the parts if there are several, and what the chunker needs of models."""
        asked = (AskBoundaries(self),) if self.chunker.prompter else ()
        embedded = (EmbedPieces(self),) if self.embedder else ()
        return (self.tokens, *self.part_stages, *asked, *embedded)

    @property
    def uses_models(self) -> bool:
        """Whether models decide where to cut."""
        return self.chunker.prompter is not None or self.embedder is not None

    @cached_property
    def part_stages(self) -> "tuple[ChunkPart, ...]":
        """The stages that cut a large corpus; none if models decide where to cut, as they see all documents at once."""
        return ChunkPart.split(replace(self, parts=1), 1 if self.uses_models else self.parts)

    @property
    def reads_answers(self) -> bool:
        """Whether a language model decided where to cut."""
        return self.chunker.prompter is not None

    def requests(
        self, work: Workspace, first: int = 0, last: int | None = None
    ) -> Iterator[tuple[Document, CutRequest]]:
        """Yield each document, from number `first` to before `last`, with what the chunker needs to know about it."""
        for doc in self.tokens.documents(work, first, last):
            with blamed(self.chunker, f"chunker {self.chunker.name()}: document '{doc.id}'"):
                request = self.chunker.request(doc)
            yield doc, request

    def build(self, work: Workspace) -> Artifact:
        """Return all chunks, by document, then start and end, in arrays of shape (chunks,).

        They are `doc` (document number), `start` and `end` (characters), `tokens` and `scale`. Blank and repeated spans
        are left out; a span in several scales counts as the finest. Raises ConfigError if a chunker returns a span
        outside the document, something other than spans, or no chunk at all, and JudgeError if too many answers are
        missing.
        """
        if self.part_stages:
            made = [part.read(work).arrays for part in self.part_stages]
            table = np.column_stack([np.concatenate([one[name] for one in made]) for name in _COLUMNS])
            answers: Mapping[Task, Answer] = {}
        else:
            table, answers = self.cut(work)
        documents = work.data.documents
        if not len(table) and any(doc.text.strip() for doc in documents):
            named = next(doc.id for doc in documents if doc.text.strip())
            message = f"returned no chunk for any of {plural(len(documents), 'document')}, such as '{named}'"
            raise ConfigError(f"chunker {self.chunker.name()}: {message}")
        columns = dict(zip(_COLUMNS, table.T.copy(), strict=True))
        if self.chunker.prompter is None:
            return Artifact(columns)
        failed = few_enough(self.chunker, list(answers.values()), "questions have no answer")
        return Artifact(columns, {"asked": len(answers), "failed": failed})

    def cut(self, work: Workspace, first: int = 0, last: int | None = None) -> tuple[Ints, Mapping[Task, Answer]]:
        """Return the chunks of documents from number `first` to before `last`: rows of `_COLUMNS`, (chunks, 5).

        The second value has the answers of a language model to the chunker's questions.
        """
        if self.uses_models:
            held = int(work.data.documents.lengths.sum())
            require_memory(
                f"chunker {self.chunker.name()}: holds all documents and what models say of them",
                _HELD * held,
                "use a chunker that needs no model, or a part of the corpus",
            )
        requests = list(self.requests(work, first, last))
        answers = self._answers([task for _, request in requests for task in request.tasks], work)
        vectors = self._vectors(requests, work)
        parts: list[Ints] = []
        for number, (doc, request) in enumerate(requests, first):
            given = CutInputs(request, next(vectors), [answers[task] for task in request.tasks])
            with blamed(self.chunker, f"chunker {self.chunker.name()}: document '{doc.id}'"):
                tilings = self.chunker.cut(doc, given)
            parts.append(_rows(self.chunker, number, doc, tilings))
        return np.concatenate(parts) if parts else np.empty((0, len(_COLUMNS)), np.int64), answers

    def _answers(self, tasks: list[Task], work: Workspace) -> dict[Task, Answer]:
        if self.chunker.prompter is None:
            return {}
        answers = stored(work.answers, self.chunker.prompter, tasks)
        few_enough(self.chunker, list(answers.values()), "questions have no answer")
        return answers

    def _vectors(self, requests: Sequence[tuple[Document, CutRequest]], work: Workspace) -> Iterator[Vectors | None]:
        """The unit vectors of each document's pieces."""
        texts = [[doc.text[start:end] for start, end in request.pieces] for doc, request in requests]
        if self.embedder is not None:
            # All pieces first: many documents are too short to fill a batch.
            work.vectors.fill(self.embedder, [text for row in texts for text in row])
        for row in texts:
            yield None if self.embedder is None else unit_rows(work.vectors.embed(self.embedder, row).vectors)


@dataclass(frozen=True, eq=False)
class ChunkPart(PartStage[Chunk]):
    """Cuts a part of a large corpus: the documents of part number `part` of `parts`."""

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The tokens."""
        return (self.whole.tokens,)

    def build(self, work: Workspace) -> Artifact:
        """Return the chunks of the part, as in `Chunk`."""
        first, last = part_of(len(work.data.documents), self.part, self.parts)
        return Artifact(dict(zip(_COLUMNS, self.whole.cut(work, first, last)[0].T.copy(), strict=True)))


def _rows(chunker: BaseChunker, number: int, doc: Document, tilings: Sequence[Spans]) -> Ints:
    """The chunks of document `number`: rows of document, start, end, tokens and scale."""
    scales: dict[tuple[int, int], int] = {}
    for scale, returned in enumerate(tilings):
        for span in _spans(chunker, doc, returned):
            scales.setdefault(span, scale)
    for start, end in scales:
        if not 0 <= start <= end <= len(doc.text):
            message = f"has {plural(len(doc.text), 'character')}, but the chunker returned the span {start}-{end}"
            raise ConfigError(f"chunker {chunker.name()}: document '{doc.id}' {message}")
    spans = sorted(span for span in scales if doc.text[span[0] : span[1]].strip())
    kept = np.array(spans, np.int64).reshape(-1, 2)
    tokens = doc.token_map().counts(kept[:, 0], kept[:, 1])
    levels = np.array([scales[span] for span in spans], np.int64)
    return np.column_stack([np.full(len(kept), number), kept, tokens, levels])


def _spans(chunker: BaseChunker, doc: Document, returned: Spans) -> list[tuple[int, int]]:
    """The spans that a chunker returned for a document, as integers."""
    try:
        return [(operator.index(start), operator.index(end)) for start, end in returned]
    except (TypeError, ValueError):
        got = f"split returned {returned!r:.60} for document '{doc.id}'"
        raise ConfigError(f"chunker {chunker.name()}: {got}; expected a list of (start, end) offsets") from None


@dataclass(frozen=True, eq=False)
class AskBoundaries(AskStage):
    """Asks a chunker's language model where to cut."""

    turn: ClassVar[int] = 10
    title: ClassVar[str] = "chunk boundaries"
    chunk: Chunk

    @cached_property
    def address(self) -> str:
        """That of the chunks."""
        return f"boundaries of {self.chunk.address}"

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The tokens."""
        return (self.chunk.tokens,)

    def questions(self, work: Workspace) -> Questions:
        """Return the questions that the chunker has, in corpus order."""
        requests = self.chunk.requests(work)
        return self.chunk.chunker, [task for _, request in requests for task in request.tasks]


@dataclass(frozen=True, eq=False)
class EmbedPieces(EmbedStage):
    """Embeds the pieces of documents whose vectors decide where to cut."""

    turn: ClassVar[int] = 20
    title: ClassVar[str] = "embed for chunking, {label}"
    chunk: Chunk

    @cached_property
    def address(self) -> str:
        """That of the chunks."""
        return f"pieces of {self.chunk.address}"

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The tokens."""
        return (self.chunk.tokens,)

    @property
    def embedder(self) -> Embedder:
        """The trial's embedder."""
        assert self.chunk.embedder is not None
        return self.chunk.embedder

    def texts(self, work: Workspace) -> list[str]:
        """Return the texts of all pieces, in corpus order."""
        requests = self.chunk.requests(work)
        return [doc.text[start:end] for doc, request in requests for start, end in request.pieces]
