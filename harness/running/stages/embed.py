"""Embedding what stages need, before they run: each distinct text once, with all threads of this process."""

import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

from harness.components.component import identity
from harness.components.roles import Embedder
from harness.core.progress import progress
from harness.core.sequences import Joined
from harness.running.stages.embeddings import namespace
from harness.running.stages.model_access import ModelAccess
from harness.running.stages.stage import ModelStage, StoredStage
from harness.running.stages.workspace import Workspace
from harness.storage.digest import digest


class TextsToEmbed(NamedTuple):
    """The distinct texts that an embedder has no cached vectors for, of documents and of queries.

    `label` is unique to the embedder.
    """

    label: str
    embedder: Embedder
    work: Workspace
    documents: Sequence[str]
    queries: Sequence[str]

    @property
    def both(self) -> Sequence[str]:
        """All texts."""
        return Joined([self.documents, self.queries])


@dataclass(frozen=True, eq=False)
class EmbedStage(ModelStage):
    """A stage that needs vectors of texts."""

    title: ClassVar[str] = "embed"

    @property
    @abstractmethod
    def embedder(self) -> Embedder:
        """The embedder."""

    @property
    def charges(self) -> bool:
        """Whether the embedder charges money."""
        return self.embedder.metered

    @property
    def stored_as(self) -> Sequence[tuple[str, str]]:
        """The vectors of the embedder, of whatever texts, and what is measured with it."""
        spaces = (namespace(self.embedder, queries=queries) for queries in (False, True))
        measured = self.measured.stored_as if self.measured else ()
        return (*(("embed", f"vectors/{space}") for space in spaces), *measured)

    @abstractmethod
    def texts(self, work: Workspace) -> Sequence[str]:
        """Return the texts of documents to embed; its inputs must be stored."""

    def query_texts(self, work: Workspace) -> Sequence[str]:
        """Return the texts of queries to embed."""
        return ()

    @property
    def measured(self) -> StoredStage | None:
        """What else to make while the embedder's model is loaded."""
        return None

    @classmethod
    def fetch(cls, stages: Sequence[tuple[Self, Workspace]], models: ModelAccess) -> None:
        """Embed the texts that have no vector yet.

        On one machine, a single process embeds with all threads, as several would compete; else the workers do.
        """
        for wanted in texts_to_embed(stages):
            embedder, work = wanted.embedder, wanted.work
            with work.vectors.alone(embedder):
                # Another launch may have embedded some of them while this one waited for the lock.
                documents = work.vectors.missing(embedder, wanted.documents)
                queries = work.vectors.missing(embedder, wanted.queries, queries=True)
                wanted = wanted._replace(documents=documents, queries=queries)
                models.charge_embedding(embedder, wanted.both, work.tokenizer)
                size, seconds = sum(map(len, wanted.both)), 0.0
                with progress(cls.title.format(label=wanted.label), size, unit="characters") as advance:
                    for asked, texts in ((False, documents), (True, queries)):
                        if models.elsewhere and not embedder.metered:
                            seconds += models.elsewhere.embed(embedder, texts, work, queries=asked, advance=advance)
                        else:
                            begin = time.perf_counter()
                            work.vectors.fill(embedder, texts, queries=asked, progress=advance)
                            seconds += time.perf_counter() - begin
                models.paces.note(pace_kind(embedder), size, seconds)
        for stage, work in stages:
            if stage.measured and models.elsewhere and not stage.embedder.metered:
                models.elsewhere.make(stage.measured, work)
            elif stage.measured:
                stage.measured.read(work)


def pace_kind(embedder: Embedder) -> str:
    """The kind of work under which the pace of an embedder is kept, in seconds per character."""
    return f"embed {digest(identity(embedder))[:16]}"


def texts_to_embed(stages: Sequence[tuple[EmbedStage, Workspace]]) -> list[TextsToEmbed]:
    """Return the texts that have no vector yet, by embedder, in the order of the stages."""
    wanted: dict[str, tuple[Embedder, Workspace, list[Sequence[str]], list[Sequence[str]]]] = {}
    for stage, work in stages:
        known = wanted.setdefault(digest(identity(stage.embedder)), (stage.embedder, work, [], []))
        known[2].append(stage.texts(work))
        known[3].append(stage.query_texts(work))
    found: dict[str, TextsToEmbed] = {}
    for embedder, work, texts, asked in wanted.values():
        label = embedder.label if embedder.label not in found else f"{embedder.label} {len(found)}"
        documents = work.vectors.missing(embedder, Joined(texts))
        queries = work.vectors.missing(embedder, Joined(asked), queries=True)
        found[label] = TextsToEmbed(label, embedder, work, documents, queries)
    return list(found.values())
