"""What a launch would compute and cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from harness.components.llm_roles import LlmJudge
from harness.experiment.experiment import Experiment
from harness.llm.prices import dollars
from harness.running.judging.judging import Judging
from harness.running.models import Models, answers_of
from harness.running.prefetch import costs, pending_chunk_calls, pending_context_calls, select_bounds
from harness.running.session import Session, store_folder


class PlannedTrial(NamedTuple):
    """A trial's name, and by stage whether its output is stored."""

    name: str
    stored: Mapping[str, bool]


@dataclass(frozen=True)
class Plan:
    """What a launch would do: the stages stored per trial, the texts to embed and the calls to make.

    `texts` (number of distinct texts), `tokens` and `usd` (dollars) are keyed by embedder; `usd` is None if the price
    is not known.
    """

    trials: Sequence[PlannedTrial]
    texts: Mapping[str, int]
    tokens: Mapping[str, int]
    usd: Mapping[str, float | None]
    calls: Sequence[str] = ()
    """Lines about calls to models. Those of judges are exact if all selections are stored, else upper bounds."""


def plan(experiment: Experiment, *, store: Path | str | None = None, models: Models | None = None) -> Plan:
    """Return what `run` would do. Chunks the corpus if that is not stored, to count texts; sends nothing to models."""
    models = models or Models()
    session = Session(experiment, store_folder(store), price=models.price)
    session.require_packages()
    planned = [
        PlannedTrial(name, session.pipeline(trial).stored(trial))
        for trial, name in zip(session.trials, session.names, strict=True)
    ]
    texts: dict[str, int] = {}
    tokens: dict[str, int] = {}
    usd: dict[str, float | None] = {}
    cuts = {f"{label}, for chunking": found for label, found in session.to_cut().items()}
    for label, (embedder, pipeline, documents, queries) in (cuts | session.to_embed()).items():
        count = pipeline.tokens
        texts[label] = len(documents) + len(queries)
        tokens[label] = sum(map(count, documents)) + sum(map(count, queries))
        price = embedder.price_with(models.price)
        usd[label] = None if price is None else tokens[label] * price / 1e6
    return Plan(planned, texts, tokens, usd, _calls(session, models))


def _calls(session: Session, models: Models) -> list[str]:
    """Lines about the calls to language models and rerankers, and their cost."""
    lines = []
    for wanted in (pending_chunk_calls(session), pending_context_calls(session)):
        lines += [cost.summary(name) for name, cost in costs(wanted, answers_of(session), models.price).items()]
    if any(session.pipeline(trial).needs_chunk_calls(trial) for trial in session.trials):
        message = "what else to embed, retrieve and judge is known once the documents are chunked"
        return [*lines, *select_bounds(session), message]
    if lines:
        lines.append("what else to embed and judge is known once the contexts are written")
    return [*lines, *select_bounds(session), *_judge_calls(session, models)]


def _judge_calls(session: Session, models: Models) -> list[str]:
    if not session.trials[0].judges:
        return []
    judging = Judging(session, answers_of(session), price=models.price)
    if not any(isinstance(judge, LlmJudge) for judge in session.trials[0].judges):
        return []
    if all(session.pipeline(trial).stored(trial)["select"] for trial in session.trials):
        listing = judging.claims.estimate()
        lines = [listing.summary("claims of reference answers")] if listing.calls else []
        return lines + [summary.cost for summary in judging.summaries() if summary.model]
    exact = "exact once the selections are stored"
    return [
        f"{name}: at most {bound.calls} calls, {dollars(bound.max_usd)}; {exact}"
        for name, bound in judging.bound().items()
    ]
