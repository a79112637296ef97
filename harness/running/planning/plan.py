"""What a launch would compute and cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, TypedDict, TypeVar, Unpack

from harness.core.errors import ConfigError
from harness.core.plurals import plural
from harness.core.tokenizer import downloads_ranks
from harness.experiment.experiment import Experiment
from harness.llm.prices import dollars
from harness.running.engines import PROCESSES, is_cluster, open_engine, require_place
from harness.running.judging.judge_costs import expected_judging, judging_bounds
from harness.running.judging.judge_tasks import TaskPool
from harness.running.models import Models, answers_of
from harness.running.planning.bounds import select_bounds
from harness.running.planning.cluster_estimate import ClusterEstimate, estimate_cluster
from harness.running.planning.sample_timing import time_sample
from harness.running.planning.time_estimate import TimeEstimate, estimate_time
from harness.running.session import Session, store_folder
from harness.running.stages.ask import AskStage
from harness.running.stages.ask_system import AskSystem
from harness.running.stages.chunk import AskBoundaries, EmbedPieces
from harness.running.stages.contextualize import AskContexts, EmbedCorpus
from harness.running.stages.embed import TextsToEmbed, texts_to_embed
from harness.running.stages.graph import Graph
from harness.running.stages.model_access import PriceGiven, expected_costs
from harness.running.stages.stage import ModelStage
from harness.running.stages.workspace import Workspace


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
    cluster: ClusterEstimate | None = None
    """What it will take on all workers; None before that is worked out."""


class PlanOptions(TypedDict, total=False):
    """The options of `plan`."""

    store: Path | str | None
    """The store: a folder, or the URL of a bucket (default: HARNESS_STORE, else `.harness` in the project)."""
    models: Models | None
    """The prices of language models."""
    workers: int
    """The number of workers (default: 1); a cluster says how many it has."""
    on: str | None
    """Where tasks would run, as for `run`. A cluster must be running."""
    time: bool
    """Whether to time stages and local models on samples of the data, on a worker."""


def plan(experiment: Experiment, **given: Unpack[PlanOptions]) -> Plan:
    """Return what `run` would do; see `PlanOptions`.

    Chunks the corpus if that is not stored, to count texts. Sends nothing to models. Raises HarnessError for every
    problem that the user can fix.
    """
    models, store = given.get("models") or Models(), given.get("store")
    workers, on = given.get("workers", 1), given.get("on")
    if workers < 1:
        raise ConfigError(f"workers: expected at least 1, got {workers}")
    require_place(on)
    session = Session(experiment, store_folder(store, experiment.base_dir), price=models.price)
    session.require_packages()
    planned = [
        PlannedTrial(name, session.outputs(trial).stored())
        for trial, name in zip(session.trials, session.names, strict=True)
    ]
    graph = session.graph()
    wanted = {f"{found.label}, for chunking": found for found in texts_to_embed(_known(graph, EmbedPieces))}
    wanted |= {found.label: found for found in texts_to_embed(_known(graph, EmbedCorpus))}
    lines, calls = _calls(session, graph, models)
    tokenizer = session.trials[0].tokenizer
    if downloads_ranks(tokenizer):
        lines.append(f"the ranks of {tokenizer} are not installed (extra [offline]); the run downloads them")
    graph, listed = session.graph(), list(wanted.values())  # the corpus may have been chunked meanwhile
    # Other engines are not opened: a batch system would start jobs.
    with open_engine(workers, on) if is_cluster(on) else open_engine(1, PROCESSES) as engine:
        session.send_to(engine)
        if given.get("time"):
            time_sample(session, listed, engine)
        time = estimate_time(session, graph, listed, engine, calls)
        workers = engine.workers if engine.far else workers
        cluster = estimate_cluster(session, graph, time, listed, workers, accelerated=engine.accelerated)
    return replace(_counted(planned, wanted, models.price), calls=lines, time=time, cluster=cluster)


def _counted(planned: Sequence[PlannedTrial], wanted: Mapping[str, TextsToEmbed], price: PriceGiven) -> Plan:
    """The plan with the number, the tokens and the price of the texts to embed."""
    texts: dict[str, int] = {}
    tokens: dict[str, int] = {}
    usd: dict[str, float | None] = {}
    for label, found in wanted.items():
        texts[label] = len(found.both)
        tokens[label] = sum(map(found.work.tokenizer.count, found.both))
        each = found.embedder.price_with(price)
        usd[label] = None if each is None else tokens[label] * each / 1e6
    return Plan(planned, texts, tokens, usd)


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
    lines += [stage.announced(work) for stage, work in graph.of_kind(AskSystem)]
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
