"""The model outputs that stages wait for: chunk boundaries, contexts and grades.

What a launch lacks is pooled over its trials, reported with its cost, and then requested.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from harness.components.component import Component
from harness.components.llm_roles import LlmAugmenter, LlmChunker, LlmComponent, LlmReranker
from harness.components.roles import Embedder, Reranker
from harness.core.progress import progress
from harness.experiment.trial import Trial
from harness.llm import AnswerCache, BatchRunner, Caller, Estimate, Task, all_missing, estimate
from harness.llm.prices import dollars
from harness.running.pipeline import Pipeline
from harness.running.session import Session
from harness.running.stages.cache_keys import pair_namespace
from harness.running.stages.rerank import scores, tasks_of, unscored
from harness.running.trial_result import PriceGiven

Notify = Callable[[str], None]


class PendingCalls(NamedTuple):
    """The tasks that a language model must answer before a stage of a trial can run."""

    trial: Trial
    prompter: LlmComponent
    tasks: list[Task]


def pending_chunk_calls(session: Session) -> list[PendingCalls]:
    """Return the calls that chunkers need, once for each distinct chunking."""
    found: dict[str, PendingCalls] = {}
    for trial in session.trials:
        pipeline = session.pipeline(trial)
        if isinstance(trial.chunker, LlmChunker) and pipeline.needs_chunk_calls(trial):
            address = pipeline.chunks_address(trial)
            if address not in found:
                found[address] = PendingCalls(trial, trial.chunker, pipeline.cut_tasks(trial))
    return list(found.values())


def pending_context_calls(session: Session) -> list[PendingCalls]:
    """Return the calls that augmenters need, once for each distinct chunking whose chunks are stored."""
    found: dict[str, PendingCalls] = {}
    for trial in session.trials:
        pipeline = session.pipeline(trial)
        if (
            isinstance(trial.augmenter, LlmAugmenter)
            and pipeline.needs_context_calls(trial)
            and not pipeline.needs_chunk_calls(trial)
        ):
            address = pipeline.passages_address(trial)
            if address not in found:
                found[address] = PendingCalls(trial, trial.augmenter, pipeline.context_tasks(trial))
    return list(found.values())


def costs(wanted: list[PendingCalls], answers: AnswerCache, price: PriceGiven) -> dict[str, Estimate]:
    """Return the expected cost by component and model; answers that are stored cost nothing."""
    found: dict[str, Estimate] = {}
    for one, left in zip(wanted, all_missing(answers, [(one.prompter, one.tasks) for one in wanted]), strict=True):
        name = _named(one.prompter)
        found[name] = found.get(name, Estimate()).plus(estimate(answers, one.prompter, left, price))
    return found


def _ask(wanted: list[PendingCalls], caller: Caller, price: PriceGiven, notify: Notify, title: str) -> None:
    for name, cost in costs(wanted, caller.answers, price).items():
        if cost.calls:
            notify(cost.summary(name))
    BatchRunner(caller).ask([(one.prompter, one.tasks) for one in wanted], title)
    if caller.stopped:
        raise KeyboardInterrupt


def cut_and_write(session: Session, caller: Caller, price: PriceGiven, notify: Notify) -> None:
    """Request chunk boundaries, embed what chunkers need, and request contexts; everything is stored.

    Raises JudgeError if too many answers are missing, KeyboardInterrupt if the caller was stopped.
    """
    wanted = pending_chunk_calls(session)
    if wanted:
        _ask(wanted, caller, price, notify, "chunk boundaries")
    for label, (embedder, pipeline, texts, _) in session.to_cut().items():
        with pipeline.vectors.alone(embedder), progress(f"embed for chunking, {label}", len(texts)) as advance:
            charge_embedding(pipeline, embedder, pipeline.vectors.missing(embedder, texts), caller, notify)
            pipeline.vectors.fill(embedder, texts, progress=advance)
    wanted = pending_context_calls(session)
    if wanted:
        _ask(wanted, caller, price, notify, "write contexts")
    for one in wanted:
        session.pipeline(one.trial).contexts(one.trial)


def charge_embedding(
    pipeline: Pipeline, embedder: Embedder, texts: Sequence[str], caller: Caller, notify: Notify
) -> None:
    """Report the cost of embedding texts and charge it to the budget; raises JudgeError if they must not be sent."""
    if embedder.metered and texts:
        tokens, price = sum(map(pipeline.tokens, texts)), embedder.price_with(caller.price_given)
        usd = None if price is None else tokens * price / 1e6
        name = _named(embedder)
        requests = math.ceil(len(texts) / getattr(embedder, "batch", 1))
        notify(f"{name}: {len(texts)} texts to embed, {tokens} tokens, {dollars(usd)}")
        caller.charge(requests, usd, name, f"embedder.{embedder.name()}.usd_per_million_tokens, or with --price")


def rerank(session: Session, caller: Caller, price: PriceGiven, notify: Notify) -> None:
    """Compute and store the selections of all trials whose steps need models.

    Their rankings should be stored. Language models are called step by step, for all trials together. Raises JudgeError
    if too many grades are missing, or if the budget does not cover what a server charges.
    """
    trials = [trial for trial in session.trials if session.pipeline(trial).needs_selection_calls(trial)]
    for place in range(max((len(trial.selector) for trial in trials), default=0)):
        wanted = []
        for trial in trials:
            step = trial.selector[place] if place < len(trial.selector) else None
            pipeline = session.pipeline(trial)
            if isinstance(step, LlmReranker):
                wanted.append(PendingCalls(trial, step, list(tasks_of(step, pipeline.pairs_at(trial, place)).values())))
            elif isinstance(step, Reranker) and step.metered:
                pairs = pipeline.pairs_at(trial, place)
                with pipeline.scored.alone(pair_namespace(step)):
                    _charge(step, unscored(step, pairs, pipeline.scored), caller, notify)
                    scores(step, pairs, pipeline.scored, pipeline.answers)
            elif step is not None and step.uses_vectors and trial.embedder.metered:
                texts = [text for _, text in pipeline.pairs_at(trial, place)]
                with pipeline.vectors.alone(trial.embedder):
                    missing = pipeline.vectors.missing(trial.embedder, texts)
                    charge_embedding(pipeline, trial.embedder, missing, caller, notify)
                    pipeline.vectors.fill(trial.embedder, missing)
        if wanted:
            _ask(wanted, caller, price, notify, "rerank")
    for trial in trials:
        session.pipeline(trial).selection(trial)


def _charge(step: Reranker, requests: int, caller: Caller, notify: Notify) -> None:
    """Report the cost of requests to a reranker and charge it to the budget, before they are sent."""
    if step.metered and requests:
        usd, name = step.usd(requests), _named(step)
        notify(f"{name}: {requests} requests, {dollars(usd)}")
        caller.charge(requests, usd, name, f"selector.{step.name()}.usd_per_thousand")


def select_bounds(session: Session) -> list[str]:
    """Return a line for each model that selector steps use: an upper bound on its work, known before retrieval."""
    return [*_vector_bounds(session), *_rerank_bounds(session)]


def _vector_bounds(session: Session) -> list[str]:
    """Bounds for steps that use vectors after a retriever that does not: only the retrieved chunks are embedded."""
    lines: dict[str, str] = {}
    for trial in session.trials:
        pipeline = session.pipeline(trial)
        steps = [step.name() for step in trial.selector if step.uses_vectors]
        known = not (pipeline.needs_chunk_calls(trial) or pipeline.needs_context_calls(trial))
        if trial.embeds_queries or not steps or not known or not pipeline.needs_selection_calls(trial):
            continue
        passages = pipeline.passages(trial)
        found = min(len(passages), len(pipeline.query_texts) * trial.retriever.depth)
        price = trial.embedder.price_with(session.price)
        usd = None if price is None else sum(sorted(passages.tokens.tolist())[-found:]) * price / 1e6
        text = "no charge" if usd == 0 else dollars(usd)
        name = f"{', '.join(steps)} after {trial.retriever.name()}"
        lines[name] = f"at most {found} chunks to embed with {trial.embedder.label}, {text}"
    return [f"{name}: {text}" for name, text in lines.items()]


def _rerank_bounds(session: Session) -> list[str]:
    """Bounds for each model that reranks."""
    bounds: dict[str, tuple[Reranker, int]] = {}
    for trial in session.trials:
        pipeline = session.pipeline(trial)
        if not pipeline.needs_selection_calls(trial):
            continue
        queries, depth = len(pipeline.query_texts), trial.retriever.depth
        for step in trial.selector:
            if isinstance(step, Reranker):
                count = queries * (step.requests(depth) if step.metered else depth)
                known = bounds.get(pair_namespace(step))
                bounds[pair_namespace(step)] = (step, max(count, known[1] if known else 0))
    return [f"{_named(step)}: {_bound(step, count)}" for step, count in bounds.values()]


def _bound(step: Reranker, count: int) -> str:
    if isinstance(step, LlmReranker):
        return f"grades for at most {count} passages per trial"
    if not step.metered:
        return f"at most {count} pairs per trial to score on this machine"
    return f"at most {count} requests per trial, {dollars(step.usd(count))}"


def _named(part: Component) -> str:
    return f"{part.name()} ({getattr(part, 'model', '')})"
