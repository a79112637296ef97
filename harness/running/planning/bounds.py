"""Upper bounds on what selector steps ask of models, known before anything is retrieved."""

from harness.components.roles import BaseReranker
from harness.core.plurals import plural
from harness.llm.prices import dollars
from harness.running.session import Session
from harness.running.stages.graph import Graph
from harness.running.stages.model_access import labelled
from harness.running.stages.rerank import pair_namespace
from harness.running.stages.select import EmbedHits
from harness.running.trial_outputs import TrialOutputs


def select_bounds(session: Session, graph: Graph) -> list[str]:
    """Return a line for each model that selector steps use: an upper bound on its work, known before retrieval."""
    left = [outputs for outputs in map(session.outputs, session.trials) if graph.has(outputs.stages.selection)]
    return [*_vector_bounds(session, graph, left), *_rerank_bounds(left)]


def _vector_bounds(session: Session, graph: Graph, left: list[TrialOutputs]) -> list[str]:
    """Bounds for steps that use vectors after a retriever that does not: only the retrieved chunks are embedded."""
    lines: dict[str, str] = {}
    for outputs in left:
        trial, stages = outputs.stages.trial, outputs.stages.selection.model_stages
        if trial.embeds_corpus or not any(isinstance(stage, EmbedHits) for stage in stages):
            continue
        if graph.waits_for_models(outputs.stages.corpus):
            continue
        tokens = outputs.passages.tokens.tolist()
        found = min(len(tokens), len(outputs.queries) * trial.retriever.depth)
        price = trial.embedder.price_with(session.price)
        usd = None if price is None else sum(sorted(tokens)[-found:]) * price / 1e6
        text = "no charge" if usd == 0 else dollars(usd)
        steps = [step.name() for step in trial.selector if step.uses_vectors]
        name = f"{', '.join(steps)} after {trial.retriever.name()}"
        lines[name] = f"at most {found} chunks to embed with {trial.embedder.label}, {text}"
    return [f"{name}: {text}" for name, text in lines.items()]


def _rerank_bounds(left: list[TrialOutputs]) -> list[str]:
    """Bounds for each model that reranks."""
    bounds: dict[str, tuple[BaseReranker, int]] = {}
    for outputs in left:
        queries, depth = len(outputs.queries), outputs.stages.trial.retriever.depth
        for step in (step.reranker for step in outputs.stages.trial.selector):
            if step is not None:
                count = queries * (step.requests(depth) if step.metered else depth)
                known = bounds.get(pair_namespace(step))
                bounds[pair_namespace(step)] = (step, max(count, known[1] if known else 0))
    return [f"{labelled(step)}: {_bound(step, count)}" for step, count in bounds.values()]


def _bound(step: BaseReranker, count: int) -> str:
    if step.prompter:
        return f"grades for at most {plural(count, 'passage')} per trial"
    if not step.metered:
        return f"at most {plural(count, 'pair')} per trial to score on this machine"
    return f"at most {plural(count, 'request')} per trial, {dollars(step.usd(count))}"
