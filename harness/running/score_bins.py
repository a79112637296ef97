"""Score bins: how often a hit is relevant in each bin of an embedder's cosines."""

from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from harness.components.component import identity, settings
from harness.components.roles import Embedder
from harness.evaluation.results import ScoreBin, ScoreBins
from harness.evaluation.stats import clustered_rate
from harness.running.session import Session
from harness.running.stages.retrieve import Retrieve
from harness.running.stages.score import Relevance
from harness.running.trial_outputs import TrialOutputs
from harness.storage.digest import digest
from harness.storage.store import Artifact

EDGES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
"""The default edges of the bins, as cosines."""


def score_bins(session: Session, edges: Sequence[float] = EDGES) -> list[ScoreBins]:
    """Return the bins of every embedder that a trial searches by cosine; empty if there is none.

    `edges` are cosines, in any order; the outermost bins are unbounded.
    """
    found: dict[str, tuple[str, dict[str, _Searched]]] = {}
    for trial in session.trials:
        outputs = session.outputs(trial)
        rankings = outputs.stages.rankings
        for searched in (rankings, *rankings.parts):
            # Use exact search: the hits of an approximate index depend on the index too.
            searched = searched.exact or searched
            part = searched.retriever
            if part.uses_vectors and not part.parts and part.scale == "cosine":
                name = _named(trial.embedder)
                _, known = found.setdefault(digest(identity(trial.embedder)), (name, {}))
                # Keep the deepest ranking of each chunking; shallower ones are part of it.
                deepest = known.get(rankings.corpus.address)
                if deepest is None or deepest.stage.retriever.depth < part.depth:
                    known[rankings.corpus.address] = _Searched(searched, outputs)
    return [_of(name, list(rankings.values()), edges) for name, rankings in found.values()]


class _Searched(NamedTuple):
    """A ranking by cosine, with the outputs of a trial it belongs to."""

    stage: Retrieve
    outputs: TrialOutputs

    def relevance(self) -> Artifact:
        """Which of its hits are relevant; see `Relevance`."""
        scores = self.outputs.stages.scores
        return Relevance(self.stage, scores.copies, scores.relevant_from).read(self.outputs.work)


def _named(embedder: Embedder) -> str:
    """The embedder's label with its non-default settings, to distinguish embedders of one class."""
    default = {f.name: f.default for f in fields(embedder)}  # type: ignore[arg-type]
    lines = [f"{key}={value}" for key, value in settings(embedder).items() if key != "model" and value != default[key]]
    return " ".join([embedder.label, *lines])


def _of(name: str, rankings: Sequence[_Searched], edges: Sequence[float]) -> ScoreBins:
    bounds = [np.inf, *sorted(edges, reverse=True), -np.inf]
    queries = rankings[0].outputs.queries
    answerable = np.array([bool(query.evidence) for query in queries])
    clusters = [query.cluster for query in queries if query.evidence]
    marked = [one.relevance().arrays for one in rankings]
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
