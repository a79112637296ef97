"""The stages of a trial, from its settings to its scores."""

from dataclasses import dataclass
from functools import cached_property

from harness.data.manifest import Copies, Manifest
from harness.experiment.trial import Trial
from harness.running.stages.chunk import Chunk
from harness.running.stages.contextualize import Contextualize
from harness.running.stages.embed_queries import QueryLatency
from harness.running.stages.locate import Locate
from harness.running.stages.retrieve import Retrieve
from harness.running.stages.score import Score
from harness.running.stages.select import Select
from harness.running.stages.spans import SpansStage
from harness.running.stages.stage import StoredStage
from harness.running.stages.tokenize import Tokenize
from harness.storage.digest import digest

PART_BYTES = 32_000_000
"""Documents of about so many bytes are tokenized, cut, indexed and searched in one task."""


@dataclass(frozen=True)
class TrialStages:
    """The stages of a trial on a data set. `tokenizer` is the tokenizer's identity."""

    trial: Trial
    manifest: Manifest
    tokenizer: str

    @property
    def _queries(self) -> str:
        sha256 = self.manifest.query_set(self.trial.queries).sha256
        return digest([sha256, self.trial.limit]) if self.trial.limit else sha256

    @cached_property
    def chunks(self) -> SpansStage:
        """The stage that finds out what is ranked: the chunks of the chunker, or the passages of another system."""
        chunker, retriever = self.trial.chunker, self.trial.retriever
        parts = max(1, self.manifest.corpus.size // PART_BYTES)
        tokens = Tokenize(self.manifest.corpus.sha256, self.tokenizer, parts)
        if retriever.system is not None:
            embedder = self.trial.embedder if self.trial.embeds_queries else None
            return Locate(tokens, retriever, embedder, self._queries, self._run, self._copies)
        return Chunk(tokens, chunker, self.trial.embedder if chunker.uses_vectors else None, parts)

    @property
    def _run(self) -> str | None:
        recorded = self.trial.retriever.recorded
        return None if recorded is None else self.manifest.run(recorded).sha256

    @property
    def _copies(self) -> Copies:
        return self.trial.copies or self.manifest.copies

    @cached_property
    def corpus(self) -> Contextualize:
        """The contextualize stage."""
        return Contextualize(self.chunks, self.trial.augmenter)

    @cached_property
    def rankings(self) -> Retrieve:
        """The retrieve stage."""
        retriever = self.trial.retriever
        embedder = self.trial.embedder if self.trial.embeds_queries else None
        return Retrieve(self.corpus, retriever, embedder, self._queries, self._run)

    @cached_property
    def selection(self) -> Select:
        """The select stage."""
        steps = self.trial.selector
        compared = any(step.uses_vectors for step in steps)
        return Select(self.rankings, steps, self.trial.embedder if compared else None)

    @cached_property
    def scores(self) -> Score:
        """The score stage."""
        trial = self.trial
        return Score(
            self.selection,
            trial.metrics,
            trial.own_metrics,
            trial.coverage,
            self._copies,
            trial.relevant_from,
            trial.unanswerable,
        )

    @property
    def query_latency(self) -> QueryLatency | None:
        """The stage that times the embedding of queries; None if the trial embeds none."""
        return QueryLatency(self.trial.embedder, self._queries) if self.trial.embeds_queries else None

    @property
    def by_name(self) -> dict[str, StoredStage]:
        """The stages that a plan shows, by name."""
        return {"chunk": self.chunks, "retrieve": self.rankings, "select": self.selection, "score": self.scores}
