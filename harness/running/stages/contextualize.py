"""The contextualize stage: a context for each chunk, which is indexed with it but never counted as evidence."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from harness.components.component import identity
from harness.components.llm_roles import few_enough
from harness.components.roles import BaseAugmenter
from harness.core.blame import blamed
from harness.core.errors import ConfigError
from harness.core.plurals import plural
from harness.core.records import BETWEEN, Document
from harness.llm import Outcome as Answer
from harness.llm import Task, stored
from harness.running.stages.ask import AskStage
from harness.running.stages.embed_queries import EmbedQueries
from harness.running.stages.model_access import Questions
from harness.running.stages.passages import Passages
from harness.running.stages.spans import SpansStage
from harness.running.stages.stage import Stage, StoredStage
from harness.running.stages.workspace import Workspace
from harness.storage.digest import digest
from harness.storage.store import Artifact, Key


@dataclass(frozen=True, eq=False)
class Contextualize(StoredStage):
    """Adds contexts to chunks. Nothing is stored if the augmenter adds none."""

    chunks: SpansStage
    augmenter: BaseAugmenter

    @cached_property
    def key(self) -> Key:
        """The chunks and the augmenter."""
        return {"stage": "augment", "chunks": self.chunks.address, "augmenter": identity(self.augmenter)}

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The chunks, and what the augmenter asks its language model."""
        return (self.chunks, *((AskContexts(self),) if self.augmenter.prompter else ()))

    @property
    def stored_as(self) -> Sequence[tuple[str, str]]:
        """The contexts, if the augmenter adds any."""
        return super().stored_as if self.augmenter.adds_context else ()

    @property
    def reads_answers(self) -> bool:
        """Whether a language model wrote the contexts."""
        return self.augmenter.prompter is not None

    def done(self, work: Workspace) -> bool:
        """Whether the chunks and their contexts are stored."""
        return work.store.has(self.key) if self.augmenter.adds_context else self.chunks.done(work)

    def make(self, work: Workspace) -> None:
        """Build and store what is missing."""
        self.passages(work)

    def spans(self, work: Workspace) -> Iterator[tuple[Document, list[tuple[int, int]]]]:
        """Yield each document with the spans of its chunks, in corpus order."""
        arrays = self.chunks.read(work).arrays
        docs, starts, ends = (arrays[name] for name in ("doc", "start", "end"))
        bounds = np.searchsorted(docs, np.arange(len(work.data.documents) + 1))
        for number, doc in enumerate(work.data.documents):
            at = slice(bounds[number], bounds[number + 1])
            yield doc, list(zip(starts[at].tolist(), ends[at].tolist(), strict=True))

    def questions(self, work: Workspace) -> list[Task]:
        """Return the questions that the augmenter has for its language model, in corpus order."""
        return [task for doc, spans in self.spans(work) for task in self.augmenter.questions(doc, spans)]

    def build(self, work: Workspace) -> Artifact:
        """Return one context per chunk, and `tokens`, the number of tokens that each adds to its chunk.

        Raises ConfigError if the augmenter does not return one text per chunk, and JudgeError if too many answers are
        missing.
        """
        augmenter = self.augmenter
        answers: Mapping[Task, Answer] = {}
        if augmenter.prompter:
            tasks = self.questions(work)
            answers = stored(work.answers, augmenter.prompter, tasks)
            few_enough(augmenter, [answers[task] for task in tasks], "chunks have no context")
        contexts: list[str] = []
        for doc, spans in self.spans(work):
            asked = augmenter.questions(doc, spans) if answers else ()
            where = f"augmenter {augmenter.name()}: document '{doc.id}'"
            with blamed(augmenter, where, spans):
                given = augmenter.contexts(doc, spans, [answers[task] for task in asked])
            if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
                raise ConfigError(f"{where}: augment returned {given!r:.60}; expected a list of texts")
            if len(given) != len(spans):
                raise ConfigError(f"{where}: {plural(len(given), 'context')} for {plural(len(spans), 'chunk')}")
            contexts += given
        # Chunks often share a context, so each distinct one is counted only once.
        count = work.tokenizer.count
        known = {context: count(context + BETWEEN) if context else 0 for context in set(contexts)}
        return Artifact({"tokens": np.array([known[context] for context in contexts], np.int64)}, contexts)

    def contexts(self, work: Workspace) -> Artifact | None:
        """Return the contexts; None if the augmenter adds none."""
        return self.read(work) if self.augmenter.adds_context else None

    def passages(self, work: Workspace) -> Passages:
        """Return the chunked and augmented corpus."""

        def read() -> Passages:
            chunks = self.chunks
            known = chunks.documents(work), chunks.maps(work), chunks.read(work), self.contexts(work)
            return Passages(*known, complete=chunks.complete)

        return work.kept("passages", self.address, read)


@dataclass(frozen=True, eq=False)
class AskContexts(AskStage):
    """Has an augmenter's language model write the contexts."""

    turn: ClassVar[int] = 30
    title: ClassVar[str] = "write contexts"
    contexts: Contextualize

    @cached_property
    def address(self) -> str:
        """That of the contexts."""
        return f"answers for {self.contexts.address}"

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The chunks."""
        return (self.contexts.chunks,)

    def questions(self, work: Workspace) -> Questions:
        """Return the questions that the augmenter has, in corpus order."""
        return self.contexts.augmenter, self.contexts.questions(work)


@dataclass(frozen=True, eq=False)
class EmbedCorpus(EmbedQueries):
    """Embeds a chunked corpus and the queries."""

    corpus: Contextualize

    @cached_property
    def address(self) -> str:
        """The corpus, the queries and the embedder."""
        return digest([self.corpus.address, self.queries, identity(self.model)])

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The chunks with their contexts."""
        return (self.corpus,)

    def texts(self, work: Workspace) -> Sequence[str]:
        """Return the indexed texts."""
        return self.corpus.passages(work).texts
