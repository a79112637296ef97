"""The report's figures as inline SVG, in the page's own colours for light and dark mode.

Lines and points differ in dash and shape as well as in colour. The colours are Okabe & Ito's palette, which remains
distinguishable with red-green colour blindness. Points have tooltips.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from harness.core.plurals import plural
from harness.data.profile import CorpusProfile, QueryProfile
from harness.evaluation.results import ScoreBins, TrialResult, resampling_seed
from harness.evaluation.stats import Effect, cluster_bootstrap
from harness.evaluation.trial_means import curves as curves_of
from reports.bins import label as bin_label
from reports.comparison import Comparison
from reports.comparison_row import Row
from reports.numbers import outcome_words
from reports.page.drawing import FAINT, INK, Drawing

BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
MARKS = ("o", "s", "^", "D", "v", "P")
VERDICTS = {"better": (BLUE, "^"), "worse": (VERMILION, "v"), "cannot tell": (INK, "o"), "baseline": (INK, "s")}
MOST_ROWS = 40


class Series(NamedTuple):
    """A line with a confidence band: x values, means, and bounds (NaN: no band)."""

    name: str
    x: Sequence[float]
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


class Point(NamedTuple):
    """A trial by cost and quality, with the confidence interval of its quality."""

    name: str
    cost: float
    value: float
    low: float
    high: float
    best: bool = False


def forest(comparison: Comparison) -> str:
    """Returns a forest plot (SVG): each trial's difference to the baseline, with individual and simultaneous intervals.

    At most `MOST_ROWS` trials are drawn: the highest, the ten lowest, and the baseline.
    """
    ranked = sorted(comparison.rows, key=lambda row: (math.isnan(row.difference), -row.difference))
    rows = ranked if len(ranked) <= MOST_ROWS else _extremes(ranked)
    drawing = Drawing(9.5, 1.1 + 0.24 * len(rows))
    (axes,) = drawing.axes
    if comparison.margin:
        axes.axvspan(-comparison.margin, comparison.margin, color=SKY, alpha=0.15, linewidth=0)
    axes.axvline(0, color=FAINT, linewidth=1)
    for place, row in enumerate(rows):
        colour, mark = VERDICTS[row.verdict]
        if not math.isnan(row.difference_low):
            axes.plot([row.difference_low, row.difference_high], [place] * 2, color=colour, linewidth=0.9)
        if not math.isnan(row.alone_low) and row.verdict != "baseline":
            axes.plot([row.alone_low, row.alone_high], [place] * 2, color=colour, linewidth=2.8, solid_capstyle="butt")
        if not math.isnan(row.difference):
            (point,) = axes.plot([row.difference], [place], mark, color=colour, markersize=6)
            drawing.say(point, _tooltip(row))
    axes.set_yticks(range(len(rows)), [_short(row.name) for row in rows], fontsize=8.5, color=INK)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel(f"difference in {comparison.metric} to '{_short(comparison.baseline)}'", fontsize=9)
    axes.grid(axis="x", color=FAINT, alpha=0.35)
    return drawing.svg(f"Differences in {comparison.metric} to the baseline, with intervals; the table has the numbers")


def _extremes(rows: Sequence[Row]) -> list[Row]:
    kept = {id(row) for row in (*rows[: MOST_ROWS - 11], *rows[-10:])}
    return [row for row in rows if id(row) in kept or row.verdict == "baseline"]


def _tooltip(row: Row) -> str:
    if row.verdict == "baseline":
        return f"{row.name}: the baseline, mean {row.mean:.3f}"
    interval = "" if math.isnan(row.difference_low) else f" ({row.difference_low:+.3f} … {row.difference_high:+.3f})"
    return f"{row.name}: {row.difference:+.3f}{interval}, {row.verdict}"


def recall_series(result: TrialResult, clusters_by: str | None) -> Series:
    """Returns recall at every token budget, with a confidence band unless `clusters_by` is None."""
    points = curves_of(result)["recall_vs_tokens"]
    tokens, means = [step for step, _ in points], [mean for _, mean in points]
    bare = [math.nan] * len(points)
    if clusters_by is None:
        return Series(result.name, tokens, means, bare, bare)
    columns = np.array([result.scores[f"recall@{step}t"] for step in tokens])
    valid = ~np.isnan(columns).any(axis=0)
    labels = np.array(result.queries if clusters_by == "queries" else result.clusters)[valid]
    seed = resampling_seed(result.queries, "recall_vs_tokens")
    found = cluster_bootstrap(columns[:, valid], labels, seed=seed, resamples=4000)
    return Series(result.name, tokens, means, found.low.tolist(), found.high.tolist())


def budget_curves(results: Sequence[TrialResult]) -> str:
    """Returns recall over the token budget (SVG): the best trials at the largest budget in colour, the others faint."""
    ranked = sorted((recall_series(result, None) for result in results), key=lambda line: -line.mean[-1])
    return curves(ranked[: len(PALETTE)], ranked[len(PALETTE) :])


def curves(coloured: Sequence[Series], others: Sequence[Series]) -> str:
    """Returns recall over the token budget (SVG): coloured lines, the first two with bands, and faint lines."""
    drawing = Drawing(9.5, 4.6)
    (axes,) = drawing.axes
    for line in others:
        axes.plot(line.x, line.mean, color=FAINT, linewidth=0.7, alpha=0.7)
    for at, line in enumerate(coloured):
        style = {"color": PALETTE[at % 6], "linestyle": DASHES[at % 6], "marker": MARKS[at % 6]}
        axes.plot(line.x, line.mean, label=_short(line.name, 44), markersize=4.5, linewidth=1.7, **style)
        if at < 2 and not np.isnan(line.low).any():
            axes.fill_between(line.x, line.low, line.high, color=PALETTE[at % 6], alpha=0.10, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.set_xticks(coloured[0].x, [f"{step:g}" for step in coloured[0].x])
    axes.minorticks_off()
    axes.set_ylim(0, 1)
    axes.set_xlabel("token budget: tokens of the selection that the reader sees", fontsize=9)
    axes.set_ylabel("recall of evidence", fontsize=9)
    axes.grid(color=FAINT, alpha=0.35)
    axes.legend(fontsize=8, frameon=False, labelcolor=INK, loc="lower right")
    return drawing.svg("Recall against token budget with 95 % intervals")


def pareto(panels: Mapping[str, Sequence[Point]], quality: str) -> str:
    """Returns quality against each cost (SVG), a panel per cost; a line joins the trials of the Pareto front."""
    drawing = Drawing(9.5, 4.2, columns=len(panels), sharey=True)
    for axes, (cost, points) in zip(drawing.axes, panels.items(), strict=True):
        front = pareto_front(points)
        axes.step(
            [point.cost for point in front], [point.value for point in front], where="post", color=FAINT, linewidth=1.2
        )
        for point in points:
            on_front = point in front
            colour = BLUE if on_front else FAINT
            if on_front and not math.isnan(point.low):
                axes.plot([point.cost] * 2, [point.low, point.high], color=colour, linewidth=1, alpha=0.6)
            (mark,) = axes.plot(
                [point.cost], [point.value], "D" if on_front else "o", color=colour, markersize=6 if on_front else 4.5
            )
            drawing.say(mark, f"{point.name}: {quality} {point.value:.3f} at {point.cost:,.4g} {cost}")
        for number, point in _apart(front):
            axes.annotate(str(number), (point.cost, point.value), (5, 4), textcoords="offset points", fontsize=8)
        axes.set_xlabel(cost, fontsize=9)
        axes.grid(color=FAINT, alpha=0.35)
    drawing.axes[0].set_ylabel(quality, fontsize=9)
    return drawing.svg(f"{quality} against cost; the Pareto front is listed below")


def _apart(front: Sequence[Point]) -> Iterator[tuple[int, Point]]:
    """The points of the front with their numbers, without those whose label would overlap the one before."""
    if not front:
        return
    across = max(front[-1].cost - front[0].cost, 1e-9)
    upward = max(front[-1].value - front[0].value, 0.05)
    last = None
    for number, point in enumerate(front, 1):
        if last is None or (point.cost - last.cost) / across > 0.04 or (point.value - last.value) / upward > 0.12:
            yield number, point
            last = point


def pareto_front(points: Sequence[Point]) -> list[Point]:
    """Returns the trials with higher quality than any at the same or lower cost, the cheapest first."""
    front: list[Point] = []
    for point in sorted(points, key=lambda one: (one.cost, -one.value)):
        if not front or point.value > front[-1].value:
            front.append(point)
    return front


def outcomes_of(losses: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Returns the evidence outcomes that occur in any trial, `found` first."""
    return sorted(
        {outcome for counts in losses.values() for outcome in counts}, key=lambda outcome: (outcome != "found", outcome)
    )


def loss_bars(losses: Mapping[str, Mapping[str, int]]) -> str:
    """Returns the evidence outcomes of each trial as stacked bars (SVG); `losses` counts evidence items by trial."""
    evidence_outcomes = outcomes_of(losses)
    drawing = Drawing(9.5, 1.2 + 0.24 * len(losses))
    (axes,) = drawing.axes
    hatches = ("", "////", "....", "xxxx", "\\\\\\\\", "oo", "++", "--")
    left = np.zeros(len(losses))
    totals = np.array([max(1, sum(counts.values())) for counts in losses.values()])
    for at, outcome in enumerate(evidence_outcomes):
        fraction = np.array([counts.get(outcome, 0) for counts in losses.values()]) / totals
        colour = (BLUE, ORANGE, SKY, VERMILION, PURPLE, GREEN)[at % 6]
        axes.barh(
            range(len(losses)),
            fraction,
            left=left,
            height=0.78,
            label=outcome_words(outcome),
            facecolor=colour,
            edgecolor="white",
            hatch=hatches[at % len(hatches)],
            linewidth=0.4,
        )
        left += fraction
    axes.set_yticks(range(len(losses)), [_short(name) for name in losses], fontsize=8.5, color=INK)
    axes.set_ylim(len(losses) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.set_xlabel("fraction of evidence items", fontsize=9)
    drawing.figure.legend(loc="outside upper center", ncols=4, fontsize=8, frameon=False, labelcolor=INK)
    return drawing.svg("Evidence outcomes by trial")


def factor_bars(effects: Sequence[Effect], metric: str) -> str:
    """Returns main effects with their intervals (SVG), a row per level."""
    drawing = Drawing(9.5, 0.9 + 0.26 * len(effects))
    (axes,) = drawing.axes
    axes.axvline(0, color=FAINT, linewidth=1)
    for place, effect in enumerate(effects):
        excludes_zero = effect.low > 0 or effect.high < 0
        colour = (BLUE if effect.value > 0 else VERMILION) if excludes_zero else INK
        if not math.isnan(effect.low):
            axes.plot([effect.low, effect.high], [place] * 2, color=colour, linewidth=2)
        axes.plot([effect.value], [place], "D" if excludes_zero else "o", color=colour, markersize=5.5)
    names = [f"{' × '.join(effect.factors)}: {_short(' × '.join(effect.levels), 40)}" for effect in effects]
    axes.set_yticks(range(len(effects)), names, fontsize=8.5, color=INK)
    axes.set_ylim(len(effects) - 0.4, -0.6)
    axes.set_xlabel(f"effect on {metric}: difference from the average of the factor's levels", fontsize=9)
    axes.grid(axis="x", color=FAINT, alpha=0.35)
    return drawing.svg(f"Main effects of the grid's factors on {metric}")


def bin_bars(found: Sequence[ScoreBins]) -> str:
    """Returns the fraction of relevant hits by bin of cosine scores (SVG), with intervals; a panel per embedder."""
    drawing = Drawing(9.5, 3.2 * len(found), rows=len(found))
    for axes, one in zip(drawing.axes, found, strict=True):
        bins = one.bins[::-1]
        for place, each in enumerate(bins):
            if each.hits:
                bar = axes.bar(place, each.rate, color=SKY, width=0.8)[0]
                drawing.say(bar, f"{bin_label(each)}: {each.relevant} of {each.hits} hits are relevant")
                below, above = each.rate - each.rate_low, each.rate_high - each.rate
                axes.errorbar(place, each.rate, [[below], [above]], color=INK, capsize=3, linewidth=1)
        axes.set_xticks(range(len(bins)), [f"{bin_label(each)}\n{each.hits} hits" for each in bins], fontsize=8)
        axes.set_xlim(-0.6, len(bins) - 0.4)
        axes.set_ylim(0, 1)
        axes.set_ylabel("fraction relevant", fontsize=9)
        axes.set_xlabel(f"cosine of query and chunk, {_short(one.embedder)}", fontsize=9)
        axes.grid(axis="y", color=FAINT, alpha=0.35)
    names = ", ".join(one.embedder for one in found)
    return drawing.svg(f"Fraction of relevant hits by bin of cosine scores, {names}")


def shape_of_data(corpus: CorpusProfile, queries: QueryProfile) -> str:
    """Returns histograms (SVG): lengths of documents, queries and evidence, and positions of evidence."""
    spreads = [("document, words", corpus.words), ("query, words", queries.words)]
    spreads += [("evidence, characters", queries.lengths)] if queries.lengths.count else []
    drawing = Drawing(9.5, 2.3, columns=len(spreads) + bool(queries.positions))
    for axes, (name, spread) in zip(drawing.axes, spreads, strict=False):
        bars = axes.bar(spread.edges[:-1], spread.counts, np.diff(spread.edges), align="edge", color=SKY, edgecolor=INK)
        for bar, count, low, high in zip(bars, spread.counts, spread.edges, spread.edges[1:], strict=False):
            bar.set_linewidth(0.4)
            drawing.say(bar, f"{low:,.0f} to {high:,.0f}: {count:,}")
        axes.set_xscale("log")
        marks = sorted({spread.min, spread.median, spread.max})
        axes.set_xticks(marks, [f"{mark:,.0f}" for mark in marks])
        axes.minorticks_off()
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel(f"{name} (log)", fontsize=9)
    if queries.positions:
        axes, tenths = drawing.axes[-1], len(queries.positions)
        bars = axes.bar(range(tenths), queries.positions, color=SKY)
        for at, (bar, count) in enumerate(zip(bars, queries.positions, strict=True)):
            drawing.say(bar, f"tenth {at + 1} of the document: {plural(count, 'span')} of evidence")
        axes.set_xticks([0, tenths - 1], ["first", "last"])
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel("evidence by tenth of its document", fontsize=9)
    return drawing.svg("Lengths of documents, queries and evidence, and positions of evidence")


class RunSeries(NamedTuple):
    """A metric of a trial over scheduled runs; `when` is in milliseconds since the epoch, `verdict` an exit code."""

    name: str
    when: Sequence[int]
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    baseline: Sequence[float]
    verdict: Sequence[float]
    margin: float


_VERDICT_MARKS = ((0.0, "o", BLUE, "fine"), (1.0, "v", VERMILION, "worse"), (3.0, "D", INK, "cannot tell"))


def scheduled_runs(checks: Sequence[RunSeries]) -> str:
    """Returns the history of a gate (SVG), a panel per check: means with intervals, the baseline, and its margin."""
    from datetime import UTC, datetime

    drawing = Drawing(9.5, 0.6 + 2.7 * max(1, len(checks)), rows=max(1, len(checks)))
    for axes, one in zip(drawing.axes, checks, strict=False):
        place = range(len(one.when))
        baseline = np.array(one.baseline)
        axes.step(place, baseline, where="mid", color=FAINT, linewidth=1.4, label="baseline")
        margin = f"margin {one.margin:g}"
        axes.fill_between(place, baseline - one.margin, baseline, step="mid", color=SKY, alpha=0.2, label=margin)
        axes.plot(place, one.mean, color=BLUE, linewidth=0.8, alpha=0.6)
        # The verdict uses paired differences, which vary less than the two means.
        axes.vlines(place, one.low, one.high, color=FAINT, linewidth=1, label="95 % interval of the mean")
        for code, mark, colour, word in _VERDICT_MARKS:
            chosen = [at for at in place if one.verdict[at] == code]
            if chosen:
                axes.plot(chosen, [one.mean[at] for at in chosen], mark, color=colour, markersize=6, label=word)
        days = [f"{at}\n{datetime.fromtimestamp(when / 1000, UTC):%m-%d %H:%M}" for at, when in enumerate(one.when, 1)]
        shown = place[:: max(1, len(place) // 8)]
        axes.set_xticks(shown, [days[at] for at in shown], fontsize=8)
        axes.set_title(_short(one.name, 90), loc="left", fontsize=9, color=INK)
        axes.legend(fontsize=8, frameon=False, labelcolor=INK, ncols=6, loc="lower left", bbox_to_anchor=(0, -0.42))
        axes.grid(axis="y", color=FAINT, alpha=0.35)
    return drawing.svg("Scheduled runs of the regression gate: means, 95 % intervals, the baseline and its margin")


def _short(text: str, most: int = 52) -> str:
    """Printable text of bounded length; `$` is escaped, because matplotlib sets formulas between dollar signs."""
    shown = text if len(text) <= most else f"{text[: most - 1]}…"
    return "".join(char if char.isprintable() else "�" for char in shown).replace("$", r"\$")
