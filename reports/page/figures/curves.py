"""Figures of quality against what it costs: recall over the token budget, and the Pareto front."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from harness.evaluation.results import TrialResult, resampling_seed
from harness.evaluation.stats import cluster_bootstrap
from harness.evaluation.trial_means import curves as curves_of
from reports.appearance import DASHES, PALETTE, SHAPES
from reports.page.figures.drawing import FAINT, INK, WIDE, Drawing, colour_of, short


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


def recall_series(result: TrialResult, clusters_by: str | None) -> Series:
    """Return recall at every token budget, with a confidence band unless `clusters_by` is None."""
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
    """Return recall over the token budget (SVG): the best trials at the largest budget in colour, the others faint."""
    ranked = sorted((recall_series(result, None) for result in results), key=lambda line: -line.mean[-1])
    return curves(ranked[: len(PALETTE)], ranked[len(PALETTE) :])


def curves(coloured: Sequence[Series], others: Sequence[Series], width: float = WIDE) -> str:
    """Return recall over the token budget (SVG): coloured lines, the first two with bands, and faint lines."""
    drawing = Drawing(width, 5.2 if width < WIDE else 4.4)
    (axes,) = drawing.axes
    for line in others:
        (faint,) = axes.plot(line.x, line.mean, color=FAINT, linewidth=0.7, alpha=0.7)
        drawing.say(faint, line.name, line.name)
    for at, line in enumerate(coloured):
        style = {"color": PALETTE[at % 6], "linestyle": DASHES[at % 6], "marker": SHAPES[at % 6]}
        label = short(line.name, 40)
        (drawn,) = axes.plot(line.x, line.mean, label=label, markersize=0.1, linewidth=1.7, **style)
        drawing.say(drawn, trial=line.name)
        for x, mean in zip(line.x, line.mean, strict=True):
            (point,) = axes.plot([x], [mean], SHAPES[at % 6], color=PALETTE[at % 6], markersize=4.5)
            drawing.say(point, f"{line.name}: {mean:.3f} of the evidence within {x:g} tokens", line.name)
        if at < 2 and not np.isnan(line.low).any():
            axes.fill_between(line.x, line.low, line.high, color=PALETTE[at % 6], alpha=0.10, linewidth=0)
    axes.set_xscale("log", base=2)
    steps = list(coloured[0].x)[:: 2 if drawing.narrow and len(coloured[0].x) > 5 else 1]
    axes.set_xticks(steps, [f"{step:g}" for step in steps])
    axes.minorticks_off()
    axes.set_ylim(0, 1)
    axes.set_xlabel("token budget: tokens of the selection that the reader sees", fontsize=9)
    axes.set_ylabel("recall of evidence", fontsize=9)
    axes.grid(color=FAINT, alpha=0.35)
    shown = {"fontsize": 8, "frameon": False, "labelcolor": INK, "markerscale": 45}
    if drawing.narrow:
        axes.set_xlabel("token budget", fontsize=9)
        drawing.figure.legend(loc="outside lower center", **shown)
    else:
        axes.legend(loc="lower right", **shown)
    return drawing.svg("Recall against token budget with 95 % intervals")


def pareto(panels: Mapping[str, Sequence[Point]], quality: str, width: float = WIDE) -> str:
    """Return quality against each cost (SVG), a panel per cost; a line joins the trials of the Pareto front."""
    narrow = width < WIDE
    shape = {"rows": len(panels)} if narrow else {"columns": len(panels)}
    drawing = Drawing(width, 3.2 * len(panels) if narrow else 3.9, sharey=True, **shape)
    for axes, (cost, points) in zip(drawing.axes, panels.items(), strict=True):
        front = pareto_front(points)
        axes.step(
            [point.cost for point in front], [point.value for point in front], where="post", color=FAINT, linewidth=1.2
        )
        for point in points:
            on_front = point in front
            colour = colour_of("better") if on_front else FAINT
            if on_front and not math.isnan(point.low):
                axes.plot([point.cost] * 2, [point.low, point.high], color=colour, linewidth=1, alpha=0.6)
            (mark,) = axes.plot(
                [point.cost], [point.value], "D" if on_front else "o", color=colour, markersize=6 if on_front else 4.5
            )
            drawing.say(mark, f"{point.name}: {quality} {point.value:.3f} at {point.cost:,.4g} {cost}", point.name)
        for number, point in _apart(front):
            axes.annotate(str(number), (point.cost, point.value), (5, 4), textcoords="offset points", fontsize=8)
        axes.set_xlabel(cost, fontsize=9)
        axes.locator_params(axis="x", nbins=5)
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
    """Return the trials with higher quality than any at the same or lower cost, the cheapest first."""
    front: list[Point] = []
    for point in sorted(points, key=lambda one: (one.cost, -one.value)):
        if not front or point.value > front[-1].value:
            front.append(point)
    return front
