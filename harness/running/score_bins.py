"""Score bins: how often a hit is relevant in each bin of an embedder's cosines."""

from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise

import numpy as np

from harness.components.component import identity, settings
from harness.components.roles import Embedder, Retriever
from harness.evaluation.results import ScoreBin, ScoreBins
from harness.evaluation.stats import clustered_rate
from harness.experiment.trial import Trial
from harness.running.pipeline import Pipeline
from harness.running.session import Session
from harness.storage.digest import digest

EDGES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
"""The default edges of the bins, as cosines."""


def score_bins(session: Session, edges: Sequence[float] = EDGES) -> list[ScoreBins]:
    """Return the bins of every embedder that a trial searches by cosine; empty if there is none.

    `edges` are cosines, in any order; the outermost bins are unbounded.
    """
    found: dict[str, tuple[str, dict[str, tuple[Pipeline, Trial, Retriever]]]] = {}
    for trial in session.trials:
        pipeline = session.pipeline(trial)
        for part in (trial.retriever, *trial.retriever.parts):
            # Use exact search: the hits of an approximate index depend on the index too.
            part = part.exact() or part
            if part.uses_vectors and not part.parts and part.scale == "cosine":
                name = _named(trial.embedder)
                _, rankings = found.setdefault(digest(identity(trial.embedder)), (name, {}))
                # Keep the deepest ranking of each chunking; shallower ones are part of it.
                known = rankings.get(pipeline.passages_address(trial))
                if known is None or known[2].depth < part.depth:
                    rankings[pipeline.passages_address(trial)] = (pipeline, trial, part)
    return [_of(name, list(rankings.values()), edges) for name, rankings in found.values()]


def _named(embedder: Embedder) -> str:
    """The embedder's label with its non-default settings, to distinguish embedders of one class."""
    default = {f.name: f.default for f in fields(embedder)}  # type: ignore[arg-type]
    lines = [f"{key}={value}" for key, value in settings(embedder).items() if key != "model" and value != default[key]]
    return " ".join([embedder.label, *lines])


def _of(name: str, rankings: Sequence[tuple[Pipeline, Trial, Retriever]], edges: Sequence[float]) -> ScoreBins:
    bounds = [np.inf, *sorted(edges, reverse=True), -np.inf]
    queries = rankings[0][0].data.query_set.queries
    answerable = np.array([bool(query.evidence) for query in queries])
    clusters = [query.cluster for query in queries if query.evidence]
    marked = [pipeline.relevance(trial, part).arrays for pipeline, trial, part in rankings]
    query, scores, good = (np.concatenate([one[name] for one in marked]) for name in ("query", "scores", "relevant"))
    bins = []
    for high, low in pairwise(bounds):
        inside = (scores >= low) & (scores < high)
        hits = np.bincount(query[inside], minlength=len(queries)).astype(np.float64)
        relevant = np.bincount(query[inside & good], minlength=len(queries)).astype(np.float64)
        rate = clustered_rate(relevant[answerable], hits[answerable], clusters)
        counts = int(hits[answerable].sum()), int(relevant[answerable].sum())
        bins.append(ScoreBin(float(low), float(high), *counts, *rate))
    return ScoreBins(name, int(answerable.sum()), len(rankings), tuple(bins))
