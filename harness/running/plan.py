"""What a launch would compute and cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from harness.core.plurals import plural
from harness.core.tokenizer import downloads_ranks
from harness.experiment.experiment import Experiment
from harness.llm.prices import dollars
from harness.running.bounds import select_bounds
from harness.running.judging.judge_costs import expected_judging, judging_bounds
from harness.running.judging.judge_tasks import TaskPool
from harness.running.models import Models, answers_of
from harness.running.session import Session, store_folder
from harness.running.stages.ask import AskStage
from harness.running.stages.chunk import AskBoundaries, EmbedPieces
from harness.running.stages.contextualize import AskContexts, EmbedCorpus
from harness.running.stages.embed import texts_to_embed
from harness.running.stages.graph import Graph
from harness.running.stages.model_access import expected_costs
from harness.running.stages.stage import ModelStage
from harness.running.stages.workspace import Workspace
from harness.running.time_estimate import TimeEstimate, estimate_time


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
    time: TimeEstimate = field(default_factory=TimeEstimate)
    """How long it will take on one worker."""


def plan(experiment: Experiment, *, store: Path | str | None = None, models: Models | None = None) -> Plan:
    """Return what `run` would do. Chunks the corpus if that is not stored, to count texts; sends nothing to models."""
    models = models or Models()
    session = Session(experiment, store_folder(store, experiment.base_dir), price=models.price)
    session.require_packages()
    planned = [
        PlannedTrial(name, session.outputs(trial).stored())
        for trial, name in zip(session.trials, session.names, strict=True)
    ]
    graph = session.graph()
    wanted = {f"{found.label}, for chunking": found for found in texts_to_embed(_known(graph, EmbedPieces))}
    wanted |= {found.label: found for found in texts_to_embed(_known(graph, EmbedCorpus))}
    texts: dict[str, int] = {}
    tokens: dict[str, int] = {}
    usd: dict[str, float | None] = {}
    for label, (_, embedder, work, documents, queries) in wanted.items():
        texts[label] = len(documents) + len(queries)
        tokens[label] = sum(map(work.tokenizer.count, (*documents, *queries)))
        price = embedder.price_with(models.price)
        usd[label] = None if price is None else tokens[label] * price / 1e6
    lines, calls = _calls(session, graph, models)
    tokenizer = session.trials[0].tokenizer
    if downloads_ranks(tokenizer):
        lines.append(f"the ranks of {tokenizer} are not installed (extra [offline]); the run downloads them")
    return Plan(planned, texts, tokens, usd, lines, estimate_time(session, graph, list(wanted.values()), calls))


Kind = TypeVar("Kind", bound=ModelStage)


def _known(graph: Graph, kind: type[Kind]) -> list[tuple[Kind, Workspace]]:
    """The stages of a kind whose questions or texts are known without any model."""
    return [(stage, work) for stage, work in graph.of_kind(kind) if not graph.waits_for_models(stage)]


def _calls(session: Session, graph: Graph, models: Models) -> tuple[list[str], int]:
    """Lines about calls to language models and rerankers with their cost, and the number of calls as far as known."""
    lines, calls = [], 0
    kinds: tuple[type[AskStage], ...] = (AskBoundaries, AskContexts)
    for kind in kinds:
        wanted = [stage.questions(work) for stage, work in _known(graph, kind)]
        costs = expected_costs(wanted, answers_of(session), models.price)
        lines += [cost.summary(name) for name, cost in costs.items()]
        calls += sum(cost.calls for cost in costs.values())
    stages = [session.outputs(trial).stages for trial in session.trials]
    if any(one.chunks.uses_models and graph.has(one.chunks) for one in stages):
        message = "what else to embed, retrieve and judge is known once the documents are chunked"
        return [*lines, *select_bounds(session, graph), message], calls
    if lines:
        lines.append("what else to embed and judge is known once the contexts are written")
    judging, judged = _judge_calls(session, graph, models)
    return [*lines, *select_bounds(session, graph), *judging], calls + judged


def _judge_calls(session: Session, graph: Graph, models: Models) -> tuple[list[str], int]:
    """Lines about the calls of judges, and their number, or an upper bound."""
    if not any(judge.prompter for judge in session.trials[0].judges):
        return [], 0
    pool = TaskPool(session, answers_of(session), models.price)
    if not any(graph.has(session.outputs(trial).stages.selection) for trial in session.trials):
        listing = pool.claims.estimate()
        lines = [listing.summary("claims of reference answers")] if listing.calls else []
        asked = [summary for summary in expected_judging(pool) if summary.model]
        calls = listing.calls + sum(summary.estimate.calls for summary in asked)
        return lines + [summary.cost for summary in asked], calls
    exact = "exact once the selections are stored"
    bounds = judging_bounds(pool)
    lines = [
        f"{name}: at most {plural(bound.calls, 'call')}, {dollars(bound.max_usd)}; {exact}"
        for name, bound in bounds.items()
    ]
    return lines, sum(bound.calls for bound in bounds.values())
