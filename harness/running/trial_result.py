"""The result of a finished trial: its scores, its costs and its warnings."""

import hashlib
from collections.abc import Iterator

import numpy as np

from harness.components.roles.passage_retriever import MAX_FAILED
from harness.core.own_packages import is_built_in
from harness.evaluation.results import Judged, TrialResult
from harness.experiment.trial import Trial
from harness.running.stages.model_access import PriceGiven
from harness.running.stages.score import efficiency, metric_bounds, metric_values
from harness.running.trial_outputs import TrialOutputs
from harness.storage.digest import digest
from harness.storage.store import Artifact

_MOST = 0.95
"""With a smaller share of the text in its chunks, a custom chunker gets a warning; blanks between chunks are fine."""


def trial_result(outputs: TrialOutputs, name: str, price: PriceGiven = None) -> TrialResult:
    """Return the result of a trial, computed if needed; `price` applies to models without a known price."""
    made, ranked, selection = outputs.scores, outputs.rankings, outputs.selection
    trial, latency = outputs.stages.trial, outputs.stages.query_latency
    embedding = latency.read(outputs.work).arrays["ms"] if latency else np.zeros(0)
    return TrialResult(
        name=name,
        fingerprint=digest({"trial": outputs.stages.scores.address, "scores": _outcome(made)}),
        params=trial.params(),
        queries=made.data["queries"],
        clusters=made.data["clusters"],
        scores=metric_values(made),
        evidence_outcomes=made.data["fates"],
        efficiency=efficiency(ranked, selection, made, embedding) | dollars(outputs, price),
        warnings=list(_warnings(outputs)),
        settings=trial.identity(),
        uncertain=_uncertain(trial, made),
    )


def _uncertain(trial: Trial, scores: Artifact) -> dict[str, Judged]:
    system, values = trial.retriever.system, metric_values(scores)
    bounds = metric_bounds(scores).items() if system else ()
    return {name: Judged(trial.retriever.name(), values[name], *sides, MAX_FAILED) for name, sides in bounds}


def _outcome(scores: Artifact) -> str:
    """A digest of the scores: a hosted model may change its answers although no setting has changed."""
    arrays = sorted((name, hashlib.sha256(column.tobytes()).hexdigest()) for name, column in scores.arrays.items())
    return digest({"arrays": arrays, "data": scores.data})


def dollars(outputs: TrialOutputs, given: PriceGiven = None) -> dict[str, float]:
    """Return the cost of embedding and reranking in dollars; empty if they are free or their price is not known.

    Tokens are counted by the experiment's tokenizer. The keys are `index_usd`, `queries_usd` and `rerank_usd`.
    """
    trial, work = outputs.stages.trial, outputs.work
    price = trial.embedder.price_with(given) if trial.uses_vectors else 0.0
    selection = outputs.selection.data
    found: dict[str, float] = {}
    if price:
        tokens = int(outputs.passages.tokens.sum()) if trial.embeds_corpus else selection["embedded_tokens"]
        if trial.chunker.uses_vectors:
            tokens += outputs.stages.chunks.tokens.maps(work).tokens
        queries = sum(map(work.tokenizer.count, work.query_texts)) if trial.embeds_queries else 0
        found = {"index_usd": tokens * price / 1e6, "queries_usd": queries * price / 1e6}
    reranking = selection["usd"]
    for place, requests in selection["requests"]:
        step = trial.selector[place].reranker
        reranking += (step.usd(requests) or 0.0) if step else 0.0
    return found | {"rerank_usd": reranking} if reranking else found


def unpriced(trial: Trial, given: PriceGiven = None) -> list[str]:
    """Return the names of the components that each query calls and whose price is not known."""
    embedders = [trial.embedder] if trial.embeds_queries else []
    prices = [(embedder.name(), embedder.price_with(given)) for embedder in embedders]
    prices += [(step.name(), step.reranker.usd(1)) for step in trial.selector if step.reranker]
    return [name for name, price in prices if price is None]


def _warnings(outputs: TrialOutputs) -> Iterator[str]:
    trial = outputs.stages.trial
    advice = trial.embedder.advice() if trial.uses_vectors else None
    if advice:
        yield advice
    facts = outputs.rankings.data
    if facts["truncated"]:
        window = f"the window of {trial.embedder.label}"
        cut = f"{facts['truncated']} of {facts['chunks']} chunks"
        yield f"{cut} are longer than {window}, which saw only their beginning"
    if not is_built_in(trial.chunker):
        share = outputs.passages.share_of_text()
        if share < _MOST:
            yield f"the chunks contain {share:.0%} of the text; the rest can never be retrieved"
    yield from _unanswered(outputs)


def _unanswered(outputs: TrialOutputs) -> Iterator[str]:
    """Warnings about answers of language models that are missing within the limits allowed."""
    stages, work = outputs.stages, outputs.work
    cut = stages.chunks.read(work).data if stages.trial.chunker.prompter else None
    if cut and cut["failed"]:
        yield f"{cut['failed']} of {cut['asked']} questions about chunk boundaries have no answer"
    contexts = stages.corpus.contexts(work) if stages.trial.augmenter.prompter else None
    failed = sum(not context for context in contexts.data) if contexts else 0
    if contexts and failed:
        yield f"{failed} of {len(contexts.data)} chunks have no context: the model gave no valid one"
    selection = outputs.selection.data
    if selection["ungraded"]:
        yield f"{selection['ungraded']} of {selection['asked']} passages have no grade and were dropped"
