"""The score stage, and the facts that are reported about a finished trial."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from harness.components.component import identity, step_labels
from harness.components.roles import Metric, Selector
from harness.core.errors import ConfigError
from harness.core.rankings import Rankings
from harness.core.records import Floats, Query
from harness.core.timing import percentiles
from harness.data.dataset import Dataset
from harness.data.manifest import Copies
from harness.evaluation.metrics import EvidencePath, Items, Ranking, Step, losses, score_queries, split_metric
from harness.evaluation.metrics.intervals import size, union
from harness.evaluation.metrics.loss_attribution import NOT_RETRIEVED, PERHAPS_UNMAPPED, UNANSWERED
from harness.evaluation.metrics.matching import Passage
from harness.evaluation.metrics.measures import MEASURES
from harness.experiment.trial import Unanswerable
from harness.running.stages.locate import UNMAPPED
from harness.running.stages.own_metrics import own_scores
from harness.running.stages.passages import Passages
from harness.running.stages.ranking_checks import read_rankings
from harness.running.stages.retrieve import Retrieve
from harness.running.stages.select import Select
from harness.running.stages.selections import Selections
from harness.running.stages.stage import Stage, StoredStage
from harness.running.stages.system_bounds import HIGH, LOW, bounds
from harness.running.stages.workspace import Workspace
from harness.storage.store import Artifact, Key

CURVE_RANKS = (1, 2, 3, 5, 8, 10, 15, 20, 30, 50)
CURVE_TOKENS = (125, 250, 500, 1000, 2000, 4000)
CURVES = tuple(f"{measure}@{k}" for measure in ("recall", "precision", "ndcg") for k in CURVE_RANKS) + tuple(
    f"{measure}@{tokens}t" for measure in ("recall", "ndcg") for tokens in CURVE_TOKENS
)
"""Metrics scored for every trial, for the curves over rank and token budget."""

_METRIC = "metric:"

_RETRIEVAL_FACTS = (
    *("index_bytes", "ann_recall", "build_s", "unmapped", "unanswered", "error_rate"),
    *("retrieve_p50_ms", "retrieve_p95_ms", "retrieve_p99_ms"),
)
"""Facts of the retrieve stage that not every trial has; the times of another system are those of all queries."""


@dataclass(frozen=True, eq=False)
class Score(StoredStage):
    """Scores selections. `metrics` are those requested; see `Trial` for the other settings."""

    light: ClassVar[bool] = True
    selection: Select
    metrics: tuple[str, ...]
    own: tuple[Metric, ...]
    coverage: float
    copies: Copies
    relevant_from: float
    unanswerable: Unanswerable

    @cached_property
    def key(self) -> Key:
        """The selection, the metrics and how they are computed."""
        return {
            "stage": "score",
            "selection": self.selection.address,
            "coverage": self.coverage,
            "copies": self.copies,
            "relevant_from": self.relevant_from,
            "unanswerable": self.unanswerable,
            "metrics": self.scored,
            **({"own_metrics": [identity(metric) for metric in self.own]} if self.own else {}),
        }

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The selection."""
        return (self.selection,)

    @cached_property
    def scored(self) -> list[str]:
        """The metrics to score: those requested, recall at their cutoffs for loss attribution, and the curves."""
        recalls = (str(split_metric(name)._replace(measure="recall", level=None)) for name in self.metrics)
        return list(dict.fromkeys((*self.metrics, *recalls, *CURVES)))

    def items(self, query: Query) -> Items:
        """Return the evidence that a query needs."""
        return Items.of(query, self.coverage, self.relevant_from)

    def build(self, work: Workspace) -> Artifact:
        """Return per query the value of every metric, the outcome of every evidence item, and the tokens selected.

        Arrays have shape (queries,); a query that another system did not answer has NaN. Raises ConfigError if a
        requested metric cannot be measured on this data.
        """
        _refuse_unmeasurable(self.metrics, work.data)
        corpus = self.selection.rankings.corpus
        passages, queries = corpus.passages(work), work.queries
        selected, items = self.selection.selections(work), [self.items(query) for query in queries]
        kept = [selected.kept(at) for at in range(len(selected))]
        maps = corpus.chunks.maps(work)
        values = score_queries(
            [metric for metric in map(split_metric, self.scored) if metric.measure in MEASURES],
            items,
            kept,
            maps,
            lambda needed, touch: passages.overlapping_chunks(needed, touching=touch),
            unanswerable=0.0 if self.unanswerable == "zero" else np.nan,
        )
        values |= own_scores(self.scored, self.own, items, kept, maps, work)
        values |= bounds({name: values[name] for name in self.scored}, kept, corpus.chunks.failed(work))
        arrays = {f"{_METRIC}{name}": column for name, column in values.items()}
        arrays["context_tokens"] = np.array([sum(p.tokens + p.context_tokens for p in row) for row in kept], np.float64)
        arrays["redundancy"] = np.array([redundancy(row) for row in kept])
        for name in ("context_tokens", "redundancy"):
            arrays[name][corpus.chunks.failed(work)] = np.nan
        ranked = read_rankings(self.selection.rankings.read(work))
        facts = {
            "queries": [query.id for query in queries],
            "clusters": [query.cluster for query in queries],
            # The name of the key is that of stores written before version 0.2.
            "fates": self._evidence_outcomes(passages, ranked, items, selected, kept, work),
        }
        return Artifact(arrays, facts)

    def _evidence_outcomes(
        self,
        passages: Passages,
        ranked: Rankings,
        items: Sequence[Items],
        selected: Selections,
        kept: Sequence[list[Passage]],
        work: Workspace,
    ) -> list[list[str]]:
        """The outcome of every evidence item; evidence that another system may have returned is not just missing."""
        found = list(_evidence_outcomes(self.selection.steps, passages, ranked, items, selected, kept))
        failed = set(self.selection.rankings.corpus.chunks.failed(work))
        for at, row in enumerate(found):
            if at in failed:
                found[at] = [UNANSWERED if one == NOT_RETRIEVED else one for one in row]
            elif any(hit.doc.startswith(UNMAPPED) for hit in passages.hits(ranked, at)):
                found[at] = [PERHAPS_UNMAPPED if one == NOT_RETRIEVED else one for one in row]
        return found

    def rows(self, work: Workspace) -> Iterator[dict[str, Any]]:
        """Yield one record per query: its text, evidence with outcomes, scores, and the passages kept and dropped."""
        scores, selected = self.read(work), self.selection.selections(work)
        values = metric_values(scores)
        for at, query in enumerate(work.queries):
            needed, kept = self.items(query), selected.kept(at)
            shown = Ranking(kept, needed)
            evidence_outcomes = zip(needed.evidence, scores.data["fates"][at], strict=True)
            relevant = [shown.is_relevant(pick) for pick in kept]
            yield {
                "query_id": query.id,
                "query": query.text,
                "type": query.metadata.get("type"),
                "evidence": [{**item.places[0]._asdict(), "outcome": outcome} for item, outcome in evidence_outcomes],
                "scores": {name: _number(values[name][at]) for name in self.metrics},
                "kept": [
                    _passage_row(pick, work) | {"relevant": found} for pick, found in zip(kept, relevant, strict=True)
                ],
                "dropped": selected.dropped_rows(at),
            }


def metric_values(scores: Artifact) -> dict[str, Floats]:
    """Return the per-query values in a score artifact, each (queries,), by metric."""
    return {name: column for name, column in _columns(scores).items() if not name.startswith((LOW, HIGH))}


def metric_bounds(scores: Artifact) -> dict[str, tuple[Floats, Floats]]:
    """Return the lower and upper bounds of the values, by metric; empty if all values are certain."""
    columns = _columns(scores)
    names = [name.removeprefix(LOW) for name in columns if name.startswith(LOW)]
    return {name: (columns[f"{LOW}{name}"], columns[f"{HIGH}{name}"]) for name in names}


def _columns(scores: Artifact) -> dict[str, Floats]:
    arrays = scores.arrays.items()
    return {name.removeprefix(_METRIC): column for name, column in arrays if name.startswith(_METRIC)}


def _refuse_unmeasurable(metrics: Sequence[str], data: Dataset) -> None:
    built_in = {name: split_metric(name).measure for name in metrics}
    needs = {name: MEASURES[measure].evidence for name, measure in built_in.items() if measure in MEASURES}
    asked = [name for name, evidence in needs.items() if evidence == "spans"]
    evident = [query for query in data.query_set.queries if query.evidence]
    if asked and evident and all(query.by_document for query in evident):
        raise ConfigError(
            f"metrics: {asked[0]} measures characters, but '{data.name}' has only document-level evidence; "
            "use recall, hit, mrr, ndcg, map or precision"
        )
    judged = [name for name, evidence in needs.items() if evidence == "documents"]
    if judged and evident and not any(query.by_document for query in evident):
        raise ConfigError(
            f"metrics: {judged[0]} needs document-level judgments, but the evidence of '{data.name}' is spans; "
            "use recall, hit, mrr, ndcg, map or precision"
        )


def _evidence_outcomes(
    selector: Sequence[Selector],
    passages: Passages,
    ranked: Rankings,
    items: Sequence[Items],
    selected: Selections,
    kept: Sequence[list[Passage]],
) -> Iterator[list[str]]:
    labels = step_labels(selector)
    for number, (needed, row) in enumerate(zip(items, kept, strict=True)):

        def trace(number: int = number, needed: Items = needed) -> EvidencePath:
            dropped = selected.dropped(number)
            steps = [
                Step(label, step.spends_budget, dropped[label]) for label, step in zip(labels, selector, strict=True)
            ]
            candidates = [Passage(chunk.doc, chunk.start, chunk.end) for chunk in passages.hits(ranked, number)]
            return EvidencePath(passages.overlapping_chunks(needed, copies=True), candidates, steps)

        yield losses(needed, row, trace)


@dataclass(frozen=True, eq=False)
class Relevance(StoredStage):
    """Which hits of a ranking are relevant, as in `precision@k`."""

    rankings: Retrieve
    copies: Copies
    relevant_from: float

    @cached_property
    def key(self) -> Key:
        """The rankings, the queries and how relevance is decided."""
        counted = {"copies": self.copies, "relevant_from": self.relevant_from}
        rankings = self.rankings
        return {"stage": "relevance", "rankings": rankings.address, "queries": rankings.queries, **counted}

    def build(self, work: Workspace) -> Artifact:
        """Return arrays `query`, `scores`, `relevant`, one entry per hit."""
        ranked, passages = read_rankings(self.rankings.read(work)), self.rankings.corpus.passages(work)
        number = np.repeat(np.arange(ranked.queries), np.diff(ranked.offsets))
        found: list[bool] = []
        for at, query in enumerate(work.queries):
            row = Ranking([], Items.of(query, relevant_from=self.relevant_from))
            found += [row.is_relevant(Passage(hit.doc, hit.start, hit.end)) for hit in passages.hits(ranked, at)]
        return Artifact({"query": number, "scores": ranked.scores, "relevant": np.array(found, np.bool_)})


def efficiency(ranked: Artifact, selection: Artifact, scores: Artifact, embedding_ms: Floats) -> dict[str, float]:
    """Return a trial's costs: chunks, index bytes, context tokens, redundancy, latency percentiles, step statistics.

    `embedding_ms` holds the embedding times of the timed queries in milliseconds; it may be empty.
    """
    stages = {"embed": embedding_ms, "retrieve": ranked.arrays["ms"], "select": selection.arrays["ms"]}
    tokens, repeated = (scores.arrays[name] for name in ("context_tokens", "redundancy"))
    answered = ~np.isnan(tokens)
    facts = {
        "chunks": float(ranked.data["chunks"]),
        "context_tokens": float(tokens[answered].mean()) if answered.any() else np.nan,
        "passages": float((selection.arrays["step"] < 0).sum() / max(1, answered.sum())),
        "redundancy": float(repeated[answered].mean()) if answered.any() else np.nan,
        "empty_results": float((tokens == 0).sum()),
    }
    total = np.sum([ms for ms in stages.values() if len(ms)], axis=0)
    for stage, ms in {"latency": total, **stages}.items():
        facts |= percentiles(stage, ms[~np.isnan(ms)])  # of another system, some times may not be known
    facts |= {name: float(ranked.data[name]) for name in _RETRIEVAL_FACTS if name in ranked.data}
    for label, statistics in zip(selection.data["steps"], selection.data["statistics"], strict=False):
        facts |= {f"step_{label}_{fact}": value for fact, value in statistics.items()}
    return facts


def redundancy(row: Sequence[Passage]) -> float:
    """Return the fraction of the selected characters that an earlier passage already contains."""
    shown = sum(passage.end - passage.start for passage in row)
    by_doc: dict[str, list[tuple[int, int]]] = {}
    for passage in row:
        by_doc.setdefault(passage.doc, []).append((passage.start, passage.end))
    return 1 - sum(size(union(parts)) for parts in by_doc.values()) / shown if shown else 0.0


def _passage_row(pick: Passage, work: Workspace) -> dict[str, Any]:
    return {name: getattr(pick, name) for name in _ROW} | {"text": work.text(pick.doc, pick.start, pick.end)}


_ROW = ("doc", "start", "end", "score", "tokens", "context_tokens", "step", "reason")
"""The fields of a passage in a record."""


def _number(value: float) -> float | None:
    """A JSON number; None for NaN."""
    return None if np.isnan(value) else float(value)
