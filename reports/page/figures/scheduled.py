"""The figure of the regression gate's scheduled runs."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from reports.appearance import BLUE, SKY, VERDICTS
from reports.page.figures.drawing import FAINT, INK, WIDE, Drawing, colour_of, short


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


_WORDS = {0.0: "fine", 1.0: "worse", 3.0: "cannot tell"}


def scheduled_runs(checks: Sequence[RunSeries], width: float = WIDE) -> str:
    """Return the history of a gate (SVG), a panel per check: means with intervals, the baseline, and its margin."""
    from datetime import UTC, datetime

    drawing = Drawing(width, 0.6 + 2.7 * max(1, len(checks)), rows=max(1, len(checks)))
    for axes, one in zip(drawing.axes, checks, strict=False):
        place = range(len(one.when))
        baseline = np.array(one.baseline)
        axes.step(place, baseline, where="mid", color=FAINT, linewidth=1.4, label="baseline")
        axes.fill_between(place, baseline - one.margin, baseline, step="mid", color=SKY, alpha=0.2, label="its margin")
        axes.plot(place, one.mean, color=BLUE, linewidth=0.8, alpha=0.6)
        # The verdict uses paired differences, which vary less than the two means.
        axes.vlines(place, one.low, one.high, color=FAINT, linewidth=1, label="95 % interval of the mean")
        dates = [f"{datetime.fromtimestamp(when / 1000, UTC):%m-%d %H:%M}" for when in one.when]
        named = set[str]()
        for at in place:
            word = _WORDS.get(one.verdict[at])
            if word:
                look = VERDICTS[word]
                label = None if word in named else word
                named.add(word)
                colour = colour_of(look.role)
                (point,) = axes.plot([at], [one.mean[at]], look.shape, color=colour, markersize=6, label=label)
                says = f"run {at + 1}, {dates[at]}: {one.mean[at]:.3f}, baseline {one.baseline[at]:.3f}, {word}"
                drawing.say(point, says, f"run {one.when[at]}")
        shown = place[:: max(1, len(place) // (4 if drawing.narrow else 8))]
        axes.set_xticks(shown, [f"{at + 1}\n{dates[at].replace(' ', chr(10))}" for at in shown], fontsize=8)
        axes.set_title(short(one.name, 50 if drawing.narrow else 84), loc="left", fontsize=9, color=INK)
        axes.grid(axis="y", color=FAINT, alpha=0.35)
    known = {
        label: handle for axes in drawing.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    shape = {"fontsize": 8, "frameon": False, "labelcolor": INK, "ncols": 2 if drawing.narrow else 3}
    drawing.figure.legend(known.values(), known.keys(), loc="outside lower center", **shape)
    return drawing.svg("Scheduled runs of the regression gate: means, 95 % intervals, the baseline and its margin")
