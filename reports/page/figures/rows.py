"""Figures with a row per trial or per level: differences to the baseline, effects of factors, losses of evidence."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from harness.evaluation.stats import Effect
from reports.appearance import HATCHES, PALETTE, SKY, VERDICTS
from reports.comparison import Comparison
from reports.comparison_row import Row
from reports.numbers import outcome_words
from reports.page.figures.drawing import FAINT, INK, WIDE, Drawing, colour_of, short

MOST_ROWS = 40


def forest(comparison: Comparison, width: float = WIDE) -> str:
    """Return a forest plot (SVG): each trial's difference to the baseline, with individual and simultaneous intervals.

    At most `MOST_ROWS` trials are drawn: the highest, the ten lowest, and the baseline.
    """
    ranked = sorted(comparison.rows, key=lambda row: (math.isnan(row.difference), -row.difference))
    rows = ranked if len(ranked) <= MOST_ROWS else _extremes(ranked)
    drawing = Drawing(width, _height(len(rows), width))
    (axes,) = drawing.axes
    if comparison.margin:
        axes.axvspan(-comparison.margin, comparison.margin, color=SKY, alpha=0.15, linewidth=0)
    axes.axvline(0, color=FAINT, linewidth=1)
    for place, row in enumerate(rows):
        look = VERDICTS[row.verdict]
        colour = colour_of(look.role)
        if not math.isnan(row.difference_low):
            (line,) = axes.plot([row.difference_low, row.difference_high], [place] * 2, color=colour, linewidth=0.9)
            drawing.say(line, trial=row.name)
        if not math.isnan(row.alone_low) and row.verdict != "baseline":
            ends = [row.alone_low, row.alone_high]
            (line,) = axes.plot(ends, [place] * 2, color=colour, linewidth=2.8, solid_capstyle="butt")
            drawing.say(line, trial=row.name)
        if not math.isnan(row.difference):
            (point,) = axes.plot([row.difference], [place], look.shape, color=colour, markersize=6)
            drawing.say(point, _tooltip(row), row.name)
    names = [row.name for row in rows]
    drawing.name_rows(axes, [short(name, 46) for name in names], names)
    axes.set_xlabel(f"difference in {comparison.metric} to the baseline", fontsize=9)
    axes.grid(axis="x", color=FAINT, alpha=0.35)
    return drawing.svg(f"Differences in {comparison.metric} to the baseline, with intervals; the table has the numbers")


def _height(rows: int, width: float) -> float:
    """Inches of a figure with rows: in a narrow one, their names take a line of their own."""
    return 0.75 + (0.42 if width < WIDE else 0.24) * rows


def _extremes(rows: Sequence[Row]) -> list[Row]:
    kept = {id(row) for row in (*rows[: MOST_ROWS - 11], *rows[-10:])}
    return [row for row in rows if id(row) in kept or row.verdict == "baseline"]


def _tooltip(row: Row) -> str:
    if row.verdict == "baseline":
        return f"{row.name}: the baseline, mean {row.mean:.3f}"
    interval = "" if math.isnan(row.difference_low) else f" ({row.difference_low:+.3f} … {row.difference_high:+.3f})"
    return f"{row.name}: {row.difference:+.3f}{interval}, {row.verdict}"


def factor_bars(effects: Sequence[Effect], metric: str, width: float = WIDE) -> str:
    """Return main effects with their intervals (SVG), a row per level."""
    drawing = Drawing(width, _height(len(effects), width))
    (axes,) = drawing.axes
    axes.axvline(0, color=FAINT, linewidth=1)
    names = [f"{' × '.join(effect.factors)}: {short(' × '.join(effect.levels), 40)}" for effect in effects]
    for place, (effect, name) in enumerate(zip(effects, names, strict=True)):
        excludes_zero = effect.low > 0 or effect.high < 0
        colour = colour_of("better" if effect.value > 0 else "worse") if excludes_zero else INK
        if not math.isnan(effect.low):
            axes.plot([effect.low, effect.high], [place] * 2, color=colour, linewidth=2)
        (point,) = axes.plot([effect.value], [place], "D" if excludes_zero else "o", color=colour, markersize=5.5)
        drawing.say(point, f"{name}: {effect.value:+.3f} ({effect.low:+.3f} … {effect.high:+.3f})")
    drawing.name_rows(axes, names)
    axes.set_xlabel(f"effect on {metric}: difference from the\naverage of the factor's levels", fontsize=9)
    axes.grid(axis="x", color=FAINT, alpha=0.35)
    return drawing.svg(f"Main effects of the grid's factors on {metric}")


def outcomes_of(losses: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return the evidence outcomes that occur in any trial, `found` first."""
    return sorted(
        {outcome for counts in losses.values() for outcome in counts}, key=lambda outcome: (outcome != "found", outcome)
    )


def loss_bars(losses: Mapping[str, Mapping[str, int]], width: float = WIDE) -> str:
    """Return the evidence outcomes of each trial as stacked bars (SVG); `losses` counts evidence items by trial."""
    drawing = Drawing(width, 0.45 + _height(len(losses), width))
    (axes,) = drawing.axes
    left = np.zeros(len(losses))
    totals = np.array([max(1, sum(counts.values())) for counts in losses.values()])
    for at, outcome in enumerate(outcomes_of(losses)):
        counts = np.array([counts.get(outcome, 0) for counts in losses.values()])
        bars = axes.barh(
            range(len(losses)),
            counts / totals,
            left=left,
            height=0.36 if drawing.narrow else 0.78,
            label=outcome_words(outcome),
            facecolor=_OUTCOME_COLOURS[at % 6],
            edgecolor="white",
            hatch=HATCHES[at % len(HATCHES)],
            linewidth=0.4,
        )
        for bar, name, count, total in zip(bars, losses, counts.tolist(), totals.tolist(), strict=True):
            drawing.say(bar, f"{name}: {outcome_words(outcome)} {count} of {total} evidence items", name)
        left += counts / totals
    drawing.name_rows(axes, [short(name, 46) for name in losses], list(losses))
    axes.set_xlim(0, 1)
    axes.set_xlabel("fraction of evidence items", fontsize=9)
    columns = 2 if drawing.narrow else 4
    drawing.figure.legend(loc="outside upper center", ncols=columns, fontsize=8, frameon=False, labelcolor=INK)
    return drawing.svg("Evidence outcomes by trial")


_OUTCOME_COLOURS = (PALETTE[0], PALETTE[1], PALETTE[4], PALETTE[5], PALETTE[3], PALETTE[2])
