"""The sections of the report page; each answers one question of the reader."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from harness.core.plurals import plural
from harness.data.profile import corpus_profile
from harness.evaluation.facts import FACTS
from harness.evaluation.results import ScoreBins, TrialResult, resampling_seed
from harness.evaluation.stats import Effect, Floats, cluster_bootstrap
from harness.running.launch_result import Launch
from reports.appearance import marked
from reports.columns import shown
from reports.compare import losses_at
from reports.comparison import Comparison, footnotes
from reports.comparison_columns import glossary
from reports.factors import effects
from reports.final import Final, conclusion, times
from reports.numbers import interval, outcome_words
from reports.page import figures
from reports.page.facts import data_facts, experiment_text, provenance, queries_of, trials_text
from reports.page.judged import judges, pooled
from reports.page.parts import (
    Beside,
    Cell,
    Explorer,
    Facts,
    Figure,
    Folded,
    Heading,
    Line,
    Notes,
    Part,
    Section,
    Table,
    Text,
)
from reports.page.tables import comparison_table, difference_table, heat, number, trial_line

COLOURED = 6
"""Max trials drawn in colour in the recall curves; the others are drawn faintly."""


@dataclass(frozen=True)
class Material:
    """The input of the page: a launch, the comparison of its trials, the finalists if any, and score bins."""

    launch: Launch
    comparison: Comparison
    final: Final | None
    bins: Sequence[ScoreBins]


def sections(material: Material) -> Iterator[Section]:
    """Yields the sections of the page that have content for this launch."""
    made = (
        ("test", "Locked test set", _final),
        ("comparison", "Comparison", _comparison),
        ("budget", "Recall against token budget", _budget),
        ("cost", "Quality against cost", _cost),
        ("factors", "Effects of the factors", _factors),
        ("losses", "Where evidence is lost", _losses),
        ("judges", "Judges", lambda material: judges(material.launch, material.comparison)),
        ("pool", "Judged passages", lambda material: pooled(material.launch, material.comparison)),
        ("bins", "Relevance by score", _bins),
        ("explorer", "Query explorer", _explorer),
        ("data", "Data", _data),
        ("provenance", "Provenance", _provenance),
    )
    for name, title, work in made:
        parts = list(work(material))
        if parts:
            yield Section(name, title, parts)


def _comparison(material: Material) -> Iterator[Part]:
    comparison = material.comparison
    remarks = Notes([note.removeprefix("note: ") for note in footnotes(comparison)])
    if len(comparison.rows) > 1:
        lines = "Thin lines: simultaneous 95 % confidence intervals of all differences; thick lines: individual ones"
        marks = ", ".join(marked(verdict) for verdict in ("better", "worse", "cannot tell", "baseline"))
        legend = Text(f"{lines}. {marks}.", soft=True)
        yield Beside([Figure(partial(figures.forest, comparison))], [legend, remarks])
    yield comparison_table(comparison, [result.params for result in material.launch.results])
    for other in comparison.against:
        yield Heading(f"Against the baseline '{other.baseline}'")
        yield difference_table(other, comparison.metric)
    yield Folded("How to read this table", glossary())
    if len(comparison.rows) == 1:
        yield remarks


def _final(material: Material) -> Iterator[Part]:
    final = material.final
    if final is None:
        return
    yield Text(
        f"{final.metric} of the trial chosen on validation and of the baseline: the estimate on validation, and the "
        f"result on the locked set. The locked set has been accessed {times(final.test_set_accesses)} from this store."
    )
    head = ("trial", "", "validation", "corrected for selection", "test")
    rows = [
        Line(
            [
                Cell(score.name),
                Cell("chosen" if score.chosen else "baseline", None, "left"),
                Cell(_estimate(score.validation, score.validation_low, score.validation_high), None, "nowrap"),
                Cell(_estimate(score.corrected, score.corrected_low, score.corrected_high), None, "nowrap"),
                Cell(_estimate(score.test, score.test_low, score.test_high), None, "nowrap"),
            ]
        )
        for score in final.scores
    ]
    yield Table(head, rows, sortable=False)
    yield Text(conclusion(final))


def _budget(material: Material) -> Iterator[Part]:
    results, important = material.launch.results, material.comparison.by_importance
    drawn = [figures.recall_series(results[at], material.comparison.clusters_by) for at in important[:COLOURED]]
    others = [figures.recall_series(results[at], None) for at in important[COLOURED:]]
    bands = "Bands are individual 95 % confidence intervals at each budget, for the first two trials. Trials with "
    bands += "overlapping bands may still differ, because differences are paired."
    more = f" The other {plural(len(others), 'trial', 'is')} drawn faintly." if others else ""
    legend = Text(f"{bands}{more}", soft=True)
    rows = [
        trial_line(line.name, [Cell(f"{mean:.3f}", mean) for mean in line.mean], heat(line.mean))
        for line in (*drawn, *others)
    ]
    table = Table(("trial", *(f"{tokens:g} tokens" for tokens in drawn[0].x)), rows)
    yield Beside([Figure(partial(figures.curves, drawn, others)), legend], [table])


def whole_recall(result: TrialResult) -> Floats:
    """Returns the fraction of evidence items in the whole selection, per query with evidence; shape (queries,)."""
    recalls = [
        sum(outcome == "found" for outcome in evidence_outcomes) / len(evidence_outcomes)
        for evidence_outcomes in result.evidence_outcomes
        if evidence_outcomes
    ]
    return np.array(recalls)


_COSTS: Mapping[str, str] = {
    "usd_per_query": "dollars per query",
    "context_tokens": "context tokens",
    "latency_p50_ms": "ms per query (p50)",
}


def _cost(material: Material) -> Iterator[Part]:
    results = material.launch.results
    if len(results) < 2 or not len(whole_recall(results[0])):
        return
    recalls = np.array([whole_recall(result) for result in results])
    labels = [
        label
        for label, evidence_outcomes in zip(results[0].clusters, results[0].evidence_outcomes, strict=True)
        if evidence_outcomes
    ]
    seed = resampling_seed(results[0].queries, "recall")
    found = cluster_bootstrap(recalls, labels, seed=seed, resamples=4000)
    known = [cost for cost in _COSTS if all(cost in result.efficiency for result in results)]
    panels = {
        _COSTS[cost]: [
            figures.Point(result.name, result.efficiency[cost], *numbers)
            for result, *numbers in zip(results, found.mean, found.low, found.high, strict=True)
        ]
        for cost in known[:2]
    }
    message = (
        "Recall of the whole selection, not cut to a token budget, because the cost is that of the whole selection"
    )
    fronts: list[Part] = []
    for cost, points in panels.items():
        front = enumerate(figures.pareto_front(points), 1)
        notes = [f"{n}: {point.name}, {point.value:.3f} at {shown_cost(cost, point.cost)}" for n, point in front]
        fronts += [Heading(f"Pareto front: {cost}"), Notes(notes)]
    legend = Text(f"{message}. ◆ Pareto front: no trial has higher recall at the same or lower cost.", soft=True)
    yield Beside([Figure(partial(figures.pareto, panels, "recall of the whole selection")), legend], fronts)
    yield _cost_table(results)


def shown_cost(cost: str, value: float) -> str:
    """Returns a cost as text, in the format of its unit; `cost` is the axis label."""
    return shown(next(name for name, text in _COSTS.items() if text == cost), value)


def _cost_table(results: Sequence[TrialResult]) -> Table:
    shown_facts = [name for name, fact in FACTS.items() if fact.in_report]
    names = [name for name in shown_facts if any(name in result.efficiency for result in results)]
    rows = []
    for result in results:
        values = [float(result.efficiency.get(name, math.nan)) for name in names]
        lines = [Cell(shown(name, value), number(value)) for name, value in zip(names, values, strict=True)]
        rows.append(trial_line(result.name, lines))
    return Table(("trial", *(name.replace("_", " ") for name in names)), rows)


_MOST_INTERACTIONS = 20
"""Max interactions listed."""


def _factors(material: Material) -> Iterator[Part]:
    comparison = material.comparison
    found = effects(material.launch, comparison.metric, comparison.clusters_by)
    mains = [effect for effect in found if len(effect.factors) == 1]
    if not mains:
        return
    legend = Text(
        "Main effects: the difference of a level from the average of its factor's levels, all else equal, with "
        "simultaneous 95 % confidence intervals. ◆ the interval excludes 0.",
        soft=True,
    )
    drawn = Figure(partial(figures.factor_bars, mains, comparison.metric))
    interactions = [effect for effect in found if len(effect.factors) == 2]
    yield Beside([drawn, legend], list(_interactions(interactions)))


def _interactions(interactions: Sequence[Effect]) -> Iterator[Part]:
    if interactions:
        yield Heading("Interactions")
        most = _MOST_INTERACTIONS
        listed = f" The {most} largest of {len(interactions)} are listed." if len(interactions) > most else ""
        message = "The effect of two levels together beyond the sum of their main effects, with simultaneous intervals."
        yield Text(f"{message}{listed}", soft=True)
        rows = [
            Line(
                [
                    Cell(" × ".join(effect.factors)),
                    Cell(" × ".join(effect.levels), None, "left"),
                    Cell(f"{effect.value:+.3f}", effect.value),
                    Cell(interval(effect.low, effect.high, "+.3f"), effect.low, "range"),
                ]
            )
            for effect in sorted(interactions, key=lambda one: -abs(one.value))[:most]
        ]
        yield Table(("factors", "levels", "interaction", "95 % interval"), rows)


def _losses(material: Material) -> Iterator[Part]:
    results, metric = material.launch.results, material.comparison.metric
    if not any(any(evidence_outcomes) for evidence_outcomes in results[0].evidence_outcomes):
        return
    order = sorted(material.comparison.by_importance[: figures.MOST_ROWS])
    losses = {results[at].name: losses_at(results[at], metric) for at in order}
    evidence_outcomes = figures.outcomes_of(losses)
    rows = [
        trial_line(name, [Cell(str(counts.get(one, 0)), counts.get(one, 0)) for one in evidence_outcomes])
        for name, counts in losses.items()
    ]
    legend = Text(f"For each evidence item that {metric} misses, the first cause of the loss.", soft=True)
    table = Table(("trial", *map(outcome_words, evidence_outcomes)), rows)
    yield Beside([Figure(partial(figures.loss_bars, losses)), legend], [table])


def _bins(material: Material) -> Iterator[Part]:
    if material.bins:
        pooled = "; ".join(f"{one.embedder}: {one.queries} queries, {one.chunkings} chunkings" for one in material.bins)
        legend = Text(
            f"All hits of all queries with evidence, before selection ({pooled}). Relevance is that of the annotated "
            "evidence; unannotated passages count as irrelevant.",
            soft=True,
        )
        yield Beside([Figure(partial(figures.bin_bars, material.bins))], [legend])


def _explorer(_: Material) -> Iterator[Part]:
    yield Text(
        "Choose two trials, and a query from the list or from the figure. The details show its evidence, where it lies "
        "in the documents and what each trial brought of it, the passages that each trial selected, and what each "
        "selector step dropped and why. Evidence is underlined. The arrow keys in the list, and J and K, lead to the "
        "next query; the address of the page leads to what is shown."
    )
    yield Explorer()


def _data(material: Material) -> Iterator[Part]:
    session = material.launch.session
    assert session is not None
    documents = session.outputs(session.trials[0]).data.documents
    shape = partial(figures.shape_of_data, corpus_profile(documents), queries_of(material.launch))
    yield Beside([Facts(list(data_facts(material.launch)))], [Figure(shape)])


def _provenance(material: Material) -> Iterator[Part]:
    yield Facts(list(provenance(material.launch, material.comparison.metric)))
    yield Folded("The experiment", experiment_text(material.launch))
    yield Folded("Settings and fingerprint of every trial", trials_text(material.launch))


def _estimate(value: float, low: float, high: float) -> str:
    return "" if math.isnan(value) else f"{value:.3f} ({interval(low, high, '.3f')})"
