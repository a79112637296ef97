"""The keys under which each stage's output is stored. They depend on settings only, so all are known before a run.

A key contains the settings of its stage and the digest of the previous stage's key.
"""

from dataclasses import dataclass
from typing import Any

from harness.components.component import identity, post_answer_names
from harness.components.roles import Embedder, EmbeddingChunker, Replay, Reranker, Retriever
from harness.data.manifest import Manifest
from harness.experiment.trial import Trial
from harness.storage.digest import digest
from harness.storage.store import Key

FORMAT = 2
"""Increased if stages store or score something differently, which invalidates everything stored before."""


@dataclass(frozen=True)
class CacheKeys:
    """The keys of all stages, for trials on one corpus, one query set and one tokenizer."""

    manifest: Manifest
    queries: str
    tokenizer: str

    @property
    def _corpus(self) -> str:
        return self.manifest.corpus.sha256

    @property
    def _queries(self) -> str:
        return self.manifest.query_set(self.queries).sha256

    def tokens(self) -> Key:
        """Return the key of the token maps of all documents."""
        return {"stage": "tokenize", "format": FORMAT, "corpus": self._corpus, "tokenizer": self.tokenizer}

    def chunks(self, trial: Trial) -> Key:
        """Return the key of the trial's chunks."""
        # If vectors decide where to cut, the chunks depend on the embedder.
        embedder = {"embedder": identity(trial.embedder)} if isinstance(trial.chunker, EmbeddingChunker) else {}
        return {**self.tokens(), "stage": "chunk", "chunker": identity(trial.chunker), **embedder}

    def passages(self, trial: Trial) -> Key:
        """Return the key of the trial's augmented chunks."""
        return {"stage": "augment", "chunks": digest(self.chunks(trial)), "augmenter": identity(trial.augmenter)}

    def index(self, trial: Trial, retriever: Retriever) -> Key:
        """Return the key of a retriever's index on the trial's passages."""
        known = {**identity(retriever), "settings": retriever.index_settings()}
        embedder = {"embedder": identity(trial.embedder)} if retriever.uses_vectors else {}
        return {"stage": "index", "passages": digest(self.passages(trial)), "retriever": known, **embedder}

    def rankings(self, trial: Trial, retriever: Retriever) -> Key:
        """Return the key of a retriever's rankings of the trial's passages."""
        embedded = any(part.uses_vectors for part in (retriever, *retriever.parts))
        return {
            "stage": "retrieve",
            "passages": digest(self.passages(trial)),
            "queries": self._queries,
            "embedder": identity(trial.embedder) if embedded else None,
            "retriever": identity(retriever),
            **({"run": self.manifest.run(retriever.run).sha256} if isinstance(retriever, Replay) else {}),
        }

    def selection(self, trial: Trial) -> Key:
        """Return the key of the trial's selections."""
        steps: list[Any] = [identity(step) for step in trial.selector]
        compared = any(step.uses_vectors for step in trial.selector)
        embedder = {"embedder": identity(trial.embedder)} if compared else {}
        return {
            "stage": "select",
            "rankings": digest(self.rankings(trial, trial.retriever)),
            "steps": steps,
            **embedder,
        }

    def scores(self, trial: Trial, metrics: list[str]) -> Key:
        """Return the key of the trial's scores on `metrics`."""
        return {
            "stage": "score",
            "selection": digest(self.selection(trial)),
            "coverage": trial.coverage,
            "copies": trial.copies,
            "relevant_from": trial.relevant_from,
            "unanswerable": trial.unanswerable,
            "metrics": metrics,
        }

    def relevance(self, trial: Trial, retriever: Retriever) -> Key:
        """Return the key of the relevance of a retriever's hits."""
        rankings = digest(self.rankings(trial, retriever))
        counted = {"copies": trial.copies, "relevant_from": trial.relevant_from}
        return {"stage": "relevance", "rankings": rankings, "queries": self._queries, **counted}

    def latency(self, embedder: Embedder) -> Key:
        """Return the key of the embedder's query latency."""
        return {"stage": "time", "format": FORMAT, "embedder": identity(embedder), "queries": self._queries}


def pair_namespace(reranker: Reranker) -> str:
    """Return the cache namespace of a reranker's scores: the settings that affect them, not how many hits are kept."""
    known = identity(reranker)
    left_out = post_answer_names(reranker)
    record = {name: value for name, value in known["settings"].items() if name not in left_out}
    return digest({**known, "settings": record})


def namespace(embedder: Embedder, *, queries: bool) -> str:
    """Return the cache namespace of an embedder's vectors; queries and documents may have different prompts."""
    return digest({"embedder": identity(embedder), "queries": queries})
