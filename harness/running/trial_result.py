"""The result of a finished trial: its scores, its costs and its warnings."""

import hashlib
from collections.abc import Iterator

import numpy as np

from harness.components.llm_roles import LlmAugmenter, LlmChunker
from harness.components.roles import Embedder, EmbeddingChunker, Reranker
from harness.evaluation.results import TrialResult
from harness.experiment.trial import Trial
from harness.running.pipeline import Pipeline
from harness.running.stages.score import efficiency, metric_values
from harness.storage.digest import digest
from harness.storage.store import Artifact

PriceGiven = tuple[float, float] | None
"""Dollars per million tokens of prompts and of answers, if the user specifies them."""


def trial_result(pipeline: Pipeline, trial: Trial, name: str, price: PriceGiven = None) -> TrialResult:
    """Return the result of a trial, computed if needed; `price` applies to models without a known price."""
    made, ranked, selection = pipeline.scores(trial), pipeline.rankings(trial), pipeline.selection(trial)
    embedding = pipeline.query_latency(trial.embedder).arrays["ms"] if trial.embeds_queries else np.zeros(0)
    return TrialResult(
        name=name,
        fingerprint=digest({"trial": pipeline.fingerprint(trial), "scores": _outcome(made)}),
        params=trial.params(),
        queries=made.data["queries"],
        clusters=made.data["clusters"],
        scores=metric_values(made),
        evidence_outcomes=made.data["fates"],
        efficiency=efficiency(ranked, selection, made, embedding) | dollars(pipeline, trial, price),
        warnings=list(_warnings(pipeline, trial)),
        settings=trial.identity(),
    )


def _outcome(scores: Artifact) -> str:
    """A digest of the scores: a hosted model may change its answers although no setting has changed."""
    arrays = sorted((name, hashlib.sha256(column.tobytes()).hexdigest()) for name, column in scores.arrays.items())
    return digest({"arrays": arrays, "data": scores.data})


def dollars(pipeline: Pipeline, trial: Trial, given: PriceGiven = None) -> dict[str, float]:
    """Return the cost of embedding and reranking in dollars; empty if they are free or their price is not known.

    Tokens are counted by the experiment's tokenizer. The keys are `index_usd`, `queries_usd` and `rerank_usd`.
    """
    price = trial.embedder.price_with(given) if trial.uses_vectors else 0.0
    selection = pipeline.selection(trial).data
    found: dict[str, float] = {}
    if price:
        tokens = int(pipeline.passages(trial).tokens.sum()) if trial.embeds_queries else selection["embedded_tokens"]
        if isinstance(trial.chunker, EmbeddingChunker):
            tokens += sum(len(token_map.starts) for token_map in pipeline.maps.values())
        queries = sum(map(pipeline.tokens, pipeline.query_texts)) if trial.embeds_queries else 0
        found = {"index_usd": tokens * price / 1e6, "queries_usd": queries * price / 1e6}
    reranking = selection["usd"]
    for place, requests in selection["requests"]:
        step = trial.selector[place]
        reranking += (step.usd(requests) or 0.0) if isinstance(step, Reranker) else 0.0
    return found | {"rerank_usd": reranking} if reranking else found


def unpriced(trial: Trial, given: PriceGiven = None) -> list[str]:
    """Return the names of the components that each query calls and whose price is not known."""
    parts: list[Embedder | Reranker] = [trial.embedder] if trial.embeds_queries else []
    parts += [step for step in trial.selector if isinstance(step, Reranker)]
    prices = ((part, part.price_with(given) if isinstance(part, Embedder) else part.usd(1)) for part in parts)
    return [part.name() for part, price in prices if price is None]


def _warnings(pipeline: Pipeline, trial: Trial) -> Iterator[str]:
    advice = trial.embedder.advice() if trial.uses_vectors else None
    if advice:
        yield advice
    facts = pipeline.rankings(trial).data
    if facts["truncated"]:
        window = f"the window of {trial.embedder.label}"
        cut = f"{facts['truncated']} of {facts['chunks']} chunks"
        yield f"{cut} are longer than {window}, which saw only their beginning"
    yield from _unanswered(pipeline, trial)


def _unanswered(pipeline: Pipeline, trial: Trial) -> Iterator[str]:
    """Warnings about answers of language models that are missing within the limits allowed."""
    cut = pipeline.chunks(trial).data if isinstance(trial.chunker, LlmChunker) else None
    if cut and cut["failed"]:
        yield f"{cut['failed']} of {cut['asked']} questions about chunk boundaries have no answer"
    contexts = pipeline.contexts(trial) if isinstance(trial.augmenter, LlmAugmenter) else None
    failed = sum(not context for context in contexts.data) if contexts else 0
    if contexts and failed:
        yield f"{failed} of {len(contexts.data)} chunks have no context: the model gave no valid one"
    selection = pipeline.selection(trial).data
    if selection["ungraded"]:
        yield f"{selection['ungraded']} of {selection['asked']} passages have no grade and were dropped"
