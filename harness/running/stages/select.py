"""The select stage, and what selector steps need of models before it: rerank scores, and vectors of the hits."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

from harness.components.component import identity
from harness.components.roles import BaseReranker, Embedder, Selector
from harness.core.records import Chunk
from harness.running.stages.embed import EmbedStage
from harness.running.stages.model_access import ModelAccess, Questions
from harness.running.stages.ranking_checks import read_rankings
from harness.running.stages.rerank import pair_namespace, questions, rerank_pace, scores, unscored
from harness.running.stages.retrieve import Retrieve
from harness.running.stages.selection_run import ModelLookups, SelectionRun, retrieved_hits
from harness.running.stages.selections import Selections
from harness.running.stages.stage import ModelStage, Stage, StoredStage
from harness.running.stages.workspace import Workspace
from harness.storage.digest import digest
from harness.storage.model_outputs import Pair
from harness.storage.store import Artifact, Key


@dataclass(frozen=True, eq=False)
class Select(StoredStage):
    """Applies selector steps to rankings. `embedder` is None unless a step uses vectors."""

    light: ClassVar[bool] = True
    rankings: Retrieve
    steps: tuple[Selector, ...]
    embedder: Embedder | None

    @cached_property
    def key(self) -> Key:
        """The rankings and the steps."""
        embedder = {"embedder": identity(self.embedder)} if self.embedder else {}
        steps = [identity(step) for step in self.steps]
        return {"stage": "select", "rankings": self.rankings.address, "steps": steps, **embedder}

    @cached_property
    def inputs(self) -> tuple[Stage, ...]:
        """The rankings, and what the steps need of models."""
        return (self.rankings, *self.model_stages)

    @property
    def reads_answers(self) -> bool:
        """Whether a step reranks: scores are kept on the launching machine."""
        return any(step.reranker for step in self.steps)

    @cached_property
    def model_stages(self) -> "tuple[_StepStage, ...]":
        """A stage for each step that needs model outputs for its hits."""
        found: list[_StepStage] = []
        for place, step in enumerate(self.steps, 1):
            until = (self.rankings, self.steps[:place], self.embedder, tuple(found))
            if step.reranker:
                found.append(Rerank(*until))
            # A retriever that searches vectors has had the whole corpus embedded.
            if step.uses_vectors and self.embedder and (self.rankings.embedder is None or self.embedder.metered):
                found.append(EmbedHits(*until))
        return tuple(found)

    def build(self, work: Workspace) -> Artifact:
        """Return the passages kept for each query, and those dropped with step and reason; see `Selections`.

        Raises ConfigError if a step returns an invalid outcome, and JudgeError if too many grades are missing.
        """
        number = self.rankings.corpus.chunks.documents(work).number
        return _run(self.rankings, self.steps, self.embedder, work).artifact(self.steps, number)

    def selections(self, work: Workspace) -> Selections:
        """Return the output as records, one per query."""

        def read() -> Selections:
            return Selections(self.read(work), self.rankings.corpus.chunks.documents(work).ids)

        return work.kept("selections", self.address, read, limit=1)


def _run(rankings: Retrieve, steps: Sequence[Selector], embedder: Embedder | None, work: Workspace) -> SelectionRun:
    """The hits of all queries after some steps."""

    def with_vectors(chunks: Sequence[Chunk]) -> list[Chunk]:
        assert embedder is not None
        return work.vectors.of_chunks(embedder, chunks)

    lookups = ModelLookups(with_vectors, lambda step, pairs: scores(step, pairs, work.scored, work.answers))
    passages = rankings.corpus.passages(work)
    # Trials that differ in their selectors share the hits.
    hits = work.kept(
        "hits", rankings.address, lambda: retrieved_hits(read_rankings(rankings.read(work)), passages), limit=1
    )
    run = SelectionRun(work.queries, hits, lookups)
    for place, step in enumerate(steps):
        run.take(place, step)
    return run


@dataclass(frozen=True, eq=False)
class _StepStage(ModelStage):
    """What the last of `steps` needs of models for the hits that the steps before it keep."""

    turn: ClassVar[int] = 50
    rankings: Retrieve
    steps: tuple[Selector, ...]
    steps_embedder: Embedder | None
    before: "tuple[_StepStage, ...]"

    @cached_property
    def address(self) -> str:
        """The rankings and the steps."""
        steps = [identity(step) for step in self.steps]
        embedder = identity(self.steps_embedder) if self.steps_embedder else None
        return f"{type(self).__name__} {digest([self.rankings.address, steps, embedder])}"

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The rankings, and what the steps before it need of models."""
        return (self.rankings, *self.before)

    @property
    def round(self) -> tuple[int, int]:
        """First all first steps, then all second ones."""
        return (self.turn, len(self.steps))

    def pairs(self, work: Workspace) -> list[Pair]:
        """Return the distinct pairs of query and passage text that the step receives from the steps before it."""
        return _run(self.rankings, self.steps[:-1], self.steps_embedder, work).pairs()


@dataclass(frozen=True, eq=False)
class Rerank(_StepStage):
    """Has the hits of a reranking step scored."""

    @property
    def step(self) -> BaseReranker:
        """The reranking step."""
        assert self.steps[-1].reranker is not None
        return self.steps[-1].reranker

    @property
    def charges(self) -> bool:
        """Whether the reranker asks a language model or a server."""
        return self.step.metered or self.step.prompter is not None

    @classmethod
    def fetch(cls, stages: Sequence[tuple[Self, Workspace]], models: ModelAccess) -> None:
        """Compute or ask for the scores that are not stored."""
        wanted: list[Questions] = []
        for stage, work in stages:
            step, pairs = stage.step, stage.pairs(work)
            if step.prompter is not None:
                wanted.append((step, questions(step, pairs)))
                continue
            with work.scored.alone(pair_namespace(step)):
                missing, begin = unscored(step, pairs, work.scored), time.perf_counter()
                models.charge_reranking(step, sum(step.requests(len(texts)) for texts in missing.values()))
                if models.elsewhere and not step.metered:
                    seconds = models.elsewhere.score(step, missing, work)
                else:
                    scores(step, pairs, work.scored, work.answers)
                    seconds = time.perf_counter() - begin
                models.paces.note(rerank_pace(step), sum(map(len, missing.values())), seconds)
        if wanted:
            models.ask(wanted, "rerank")


@dataclass(frozen=True, eq=False)
class EmbedHits(EmbedStage, _StepStage):
    """Embeds the hits of a step that uses vectors, after a retriever that does not."""

    turn: ClassVar[int] = 50
    title: ClassVar[str] = "embed hits"

    @property
    def embedder(self) -> Embedder:
        """The trial's embedder."""
        assert self.steps_embedder is not None
        return self.steps_embedder

    def texts(self, work: Workspace) -> list[str]:
        """Return the indexed texts of the hits."""
        return [text for _, text in self.pairs(work)]
