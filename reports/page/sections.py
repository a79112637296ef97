"""The sections of the report page, each made of one question a reader asks."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.data.profile import corpus_profile
from harness.evaluation.results import ScoreBins, TrialResult, resampling_seed
from harness.evaluation.stats import Floats, cluster_bootstrap
from harness.running.launch_result import Launch
from reports.columns import shown
from reports.compare import losses_at
from reports.comparison import Comparison, footnotes
from reports.comparison_row import HEAD, Row, cells
from reports.factors import effects
from reports.final import Final, conclusion, times
from reports.judge_notes import cell, judge_notes, primary_measures, variance_notes
from reports.numbers import interval, outcome_words
from reports.page import figures
from reports.page.facts import data_facts, experiment_text, provenance, queries_of, trials_text
from reports.page.glossary import GLOSSARY
from reports.page.parts import Cell, Explorer, Facts, Figure, Folded, Heading, Line, Notes, Part, Section, Table, Text

TOLD = 6
"""Trials that are drawn with colour and band where all would be too many."""


@dataclass(frozen=True)
class Material:
    """What the page is made from."""

    launch: Launch
    comparison: Comparison
    final: Final | None
    bins: Sequence[ScoreBins]

    @property
    def important(self) -> list[int]:
        """Numbers of the trials, the baseline first, then the best, those not separable from it, and the others."""
        rows = self.comparison.rows

        def rank(at: int) -> tuple[bool, bool, bool, float]:
            row = rows[at]
            return row.verdict != "baseline", row.name != self.comparison.best.name, not row.may_be_best, -row.mean_min

        return sorted(range(len(rows)), key=rank)


def sections(material: Material) -> Iterator[Section]:
    """All sections that the launch has something for."""
    made = (
        ("test", "Locked test set", _final),
        ("comparison", "Comparison", _comparison),
        ("budget", "Recall against token budget", _budget),
        ("cost", "Quality against cost", _cost),
        ("factors", "What each factor does", _factors),
        ("losses", "Where evidence is lost", _losses),
        ("judges", "Judges", _judges),
        ("bins", "What a score is worth", _bins),
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
    if len(comparison.rows) > 1:
        yield Figure(figures.forest(comparison))
        drawn = "Thin lines hold for all differences at once, thick ones for each by itself"
        yield Text(f"{drawn}. ▲ better, ▼ worse, ● cannot tell, ■ the baseline.", soft=True)
    at = HEAD.index("verdict") + 1
    head = (*HEAD[:at], f"beyond {comparison.margin:g}", *HEAD[at:]) if comparison.margin else HEAD
    ranked = sorted(comparison.rows, key=lambda row: -row.mean_min)
    yield Table(head, [_line(row, bool(comparison.margin)) for row in ranked], comparison.metric)
    yield Folded("How to read this table", GLOSSARY)
    yield Notes([note.removeprefix("note: ") for note in footnotes(comparison)])


def _line(row: Row, margin: bool) -> Line:
    name, mean, interval, difference, together, p, verdict, needed, best, lost, tokens = cells(row)
    made = [
        Cell(name, name),
        Cell(mean, _number(row.mean)),
        Cell(interval, _number(row.low), "range"),
        Cell(difference, _number(row.difference)),
        Cell(together, _number(row.difference_low), "range"),
        Cell(p, _number(row.p)),
        Cell(verdict, verdict, f"left nowrap {row.verdict}" if row.verdict in ("better", "worse") else "left nowrap"),
        *([Cell(row.matters, row.matters, "left nowrap")] if margin else []),
        Cell(needed, _number(row.needed)),
        Cell(best, _number(row.p_best)),
        Cell(lost, lost, "left"),
        Cell(tokens, _number(row.context_tokens)),
    ]
    return Line(made, "baseline" if row.verdict == "baseline" else "")


def _final(material: Material) -> Iterator[Part]:
    final = material.final
    if final is None:
        return
    yield Text(
        f"{final.metric} of the trial that validation chose and of the baseline: as estimated before the locked set "
        f"was opened, and as found there. It has been opened {times(final.test_set_accesses)} from this store."
    )
    head = ("trial", "", "validation", "corrected for the choice", "test")
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
    results, important = material.launch.results, material.important
    text = important[:TOLD]
    drawn = [figures.recall_series(results[at], material.comparison.clusters_by) for at in text]
    others = [figures.recall_series(results[at], None) for at in important[TOLD:]]
    yield Figure(figures.curves(drawn, others))
    bands = "Bands are 95 % intervals at each budget by itself, of two trials, which may overlap and yet differ."
    more = f" The other {len(others)} are drawn faintly." if others else ""
    yield Text(f"{bands}{more}", soft=True)
    rows = [Line([Cell(line.name), *(Cell(f"{mean:.3f}", mean) for mean in line.mean)]) for line in (*drawn, *others)]
    yield Table(("trial", *(f"{tokens:g} tokens" for tokens in drawn[0].x)), rows)


def whole_recall(result: TrialResult) -> Floats:
    """Per query, the share of evidence items that the whole selection holds; queries without evidence left out."""
    shares = [
        sum(outcome == "found" for outcome in evidence_outcomes) / len(evidence_outcomes)
        for evidence_outcomes in result.evidence_outcomes
        if evidence_outcomes
    ]
    return np.array(shares)


_COSTS: Mapping[str, str] = {
    "usd_per_query": "dollars a query",
    "context_tokens": "context tokens",
    "latency_p50_ms": "ms a query (p50)",
}


def _cost(material: Material) -> Iterator[Part]:
    results = material.launch.results
    if len(results) < 2 or not len(whole_recall(results[0])):
        return
    shares = np.array([whole_recall(result) for result in results])
    labels = [
        label
        for label, evidence_outcomes in zip(results[0].clusters, results[0].evidence_outcomes, strict=True)
        if evidence_outcomes
    ]
    seed = resampling_seed(results[0].queries, "recall")
    found = cluster_bootstrap(shares, labels, seed=seed, resamples=4000)
    known = [cost for cost in _COSTS if all(cost in result.efficiency for result in results)]
    panels = {
        _COSTS[cost]: [
            figures.Point(result.name, result.efficiency[cost], *numbers)
            for result, *numbers in zip(results, found.mean, found.low, found.high, strict=True)
        ]
        for cost in known[:2]
    }
    yield Figure(figures.pareto(panels, "recall of the whole selection"))
    message = "Recall of all that a trial selects, not cut to a budget, since that is what its cost buys"
    yield Text(f"{message}. ◆ on the line: no trial finds more for the same cost or less.", soft=True)
    for cost, points in panels.items():
        front = enumerate(figures.pareto_front(points), 1)
        yield Heading(f"On the line of {cost}")
        yield Notes([f"{n}: {point.name}, {point.value:.3f} at {shown_cost(cost, point.cost)}" for n, point in front])
    yield _cost_table(results)


def shown_cost(cost: str, value: float) -> str:
    """A cost in the form that suits its unit."""
    return shown(next(name for name, text in _COSTS.items() if text == cost), value)


_FACTS = (
    *("context_tokens", "passages", "redundancy", "latency_p50_ms", "latency_p95_ms", "chunks", "index_bytes"),
    *("usd_per_query", "index_usd", "queries_usd", "rerank_usd", "empty_results"),
)


def _cost_table(results: Sequence[TrialResult]) -> Table:
    names = [name for name in _FACTS if any(name in result.efficiency for result in results)]
    rows = []
    for result in results:
        values = [float(result.efficiency.get(name, math.nan)) for name in names]
        lines = [Cell(shown(name, value), _number(value)) for name, value in zip(names, values, strict=True)]
        rows.append(Line([Cell(result.name, result.name), *lines]))
    return Table(("trial", *(name.replace("_", " ") for name in names)), rows)


_MEETINGS = 20
"""Interactions that are listed."""


def _factors(material: Material) -> Iterator[Part]:
    comparison = material.comparison
    found = effects(material.launch, comparison.metric, comparison.clusters_by)
    mains = [effect for effect in found if len(effect.factors) == 1]
    if not mains:
        return
    yield Figure(figures.factor_bars(mains, comparison.metric))
    yield Text(
        "How far a level lies from the average of its factor's levels, all else equal, with 95 % intervals that hold "
        "for all of them at once. ◆ leaves out 0.",
        soft=True,
    )
    meetings = [effect for effect in found if len(effect.factors) == 2]
    if meetings:
        yield Heading("Interactions")
        most = f" The {_MEETINGS} largest of {len(meetings)}." if len(meetings) > _MEETINGS else ""
        message = "What two levels together add to, or take from, the sum of their effects; intervals for all at once."
        yield Text(f"{message}{most}", soft=True)
        rows = [
            Line(
                [
                    Cell(" × ".join(effect.factors)),
                    Cell(" × ".join(effect.levels), None, "left"),
                    Cell(f"{effect.value:+.3f}", effect.value),
                    Cell(interval(effect.low, effect.high, "+.3f"), effect.low, "range"),
                ]
            )
            for effect in sorted(meetings, key=lambda one: -abs(one.value))[:_MEETINGS]
        ]
        yield Table(("factors", "levels", "interaction", "95 % interval"), rows)


def _losses(material: Material) -> Iterator[Part]:
    results, metric = material.launch.results, material.comparison.metric
    if not any(any(evidence_outcomes) for evidence_outcomes in results[0].evidence_outcomes):
        return
    order = sorted(material.important[: figures.MOST_ROWS])
    losses = {results[at].name: losses_at(results[at], metric) for at in order}
    yield Figure(figures.ledger(losses))
    yield Text(f"The first cause for each evidence item that {metric} does not see.", soft=True)
    evidence_outcomes = figures.outcomes_of(losses)
    rows = [
        Line(
            [
                Cell(name, name),
                *(Cell(str(counts.get(outcome, 0)), counts.get(outcome, 0)) for outcome in evidence_outcomes),
            ]
        )
        for name, counts in losses.items()
    ]
    yield Table(("trial", *map(outcome_words, evidence_outcomes)), rows)


def _judges(material: Material) -> Iterator[Part]:
    launch = material.launch
    if not launch.results[0].judged:
        return
    measures = primary_measures(launch)
    yield Text(
        "Means over queries (complete of all). Where judgments are missing, the range holds whatever they would be."
    )
    rows = [
        Line([Cell(r.name, r.name), *(Cell(cell(r.judged[name]), _number(r.judged[name].mean)) for name in measures)])
        for r in launch.results
    ]
    yield Table(("trial", *measures), rows)
    head = ("judge", "model", "judgments", "missing", "against people", "flips", "cost")
    yield Table(head, list(_judge_rows(launch)))
    best = next(at for at, row in enumerate(material.comparison.rows) if row.name == material.comparison.best.name)
    yield Notes([*judge_notes(launch), *variance_notes(launch, best)])


def _judge_rows(launch: Launch) -> Iterator[Line]:
    """How complete, how good and how dear each judge was."""
    for one in launch.judging_report.judges:
        missing = sum(one.failures.values())
        cost = "" if not one.model else f"${one.paid:.4f}"
        if one.unpriced:
            cost += f" and {one.unpriced} calls of unknown cost"
        flips = "" if one.flips is None else f"{one.flips:.1%}"
        texts = (one.judge, one.model or "no model", f"{one.judgments:,}", f"{missing:,}", one.calibration, flips, cost)
        yield Line([Cell(text, None, "" if at in (2, 3, 5) else "left") for at, text in enumerate(texts)])


def _bins(material: Material) -> Iterator[Part]:
    if material.bins:
        yield Figure(figures.bin_bars(material.bins))
        pooled = "; ".join(f"{one.embedder}: {one.queries} queries, {one.chunkings} chunkings" for one in material.bins)
        yield Text(
            f"All hits of every query with evidence, before any selection ({pooled}). Relevant is what the evidence "
            "says; what is not marked is irrelevant.",
            soft=True,
        )


def _explorer(_: Material) -> Iterator[Part]:
    yield Text(
        "Choose two trials, and a query from the list: what it needs, what each trial showed, what each selector step "
        "dropped and why. Arrow keys move through the list; evidence is underlined."
    )
    yield Explorer()


def _data(material: Material) -> Iterator[Part]:
    yield Facts(list(data_facts(material.launch)))
    session = material.launch.session
    assert session is not None
    documents = session.pipeline(session.trials[0]).data.documents
    yield Figure(figures.shape_of_data(corpus_profile(documents), queries_of(material.launch)))


def _provenance(material: Material) -> Iterator[Part]:
    yield Facts(list(provenance(material.launch, material.comparison.metric)))
    yield Folded("The experiment", experiment_text(material.launch))
    yield Folded("Settings and fingerprint of every trial", trials_text(material.launch))


def _number(value: float) -> float | str:
    """What a cell sorts by; empty where it is no number."""
    return "" if math.isnan(value) else round(value, 6)


def _estimate(value: float, low: float, high: float) -> str:
    return "" if math.isnan(value) else f"{value:.3f} ({interval(low, high, '.3f')})"
