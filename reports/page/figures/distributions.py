"""Figures of distributions: relevance by score, and the shape of the data."""

from collections.abc import Sequence

import numpy as np

from harness.core.plurals import plural
from harness.data.profile import CorpusProfile, QueryProfile
from harness.evaluation.results import ScoreBins
from reports.appearance import SKY
from reports.bins import label as bin_label
from reports.page.figures.drawing import FAINT, INK, WIDE, Drawing, short


def bin_bars(found: Sequence[ScoreBins], width: float = WIDE) -> str:
    """Return the fraction of relevant hits by bin of cosine scores (SVG), with intervals; a panel per embedder."""
    drawing = Drawing(width, 3.2 * len(found), rows=len(found))
    for axes, one in zip(drawing.axes, found, strict=True):
        bins = one.bins[::-1]
        for place, each in enumerate(bins):
            if each.hits:
                bar = axes.bar(place, each.rate, color=SKY, width=0.8)[0]
                drawing.say(bar, f"{bin_label(each)}: {each.relevant} of {each.hits} hits are relevant")
                below, above = each.rate - each.rate_low, each.rate_high - each.rate
                axes.errorbar(place, each.rate, [[below], [above]], color=INK, capsize=3, linewidth=1)
        labels = [f"{bin_label(each)}\n{each.hits} hits" for each in bins]
        slanted = {"rotation": 90} if drawing.narrow else {}
        axes.set_xticks(range(len(bins)), labels, fontsize=8 if len(bins) < 9 else 7, **slanted)
        axes.set_xlim(-0.6, len(bins) - 0.4)
        axes.set_ylim(0, 1)
        axes.set_ylabel("fraction relevant", fontsize=9)
        axes.set_xlabel(f"cosine of query and chunk, {short(one.embedder)}", fontsize=9)
        axes.grid(axis="y", color=FAINT, alpha=0.35)
    names = ", ".join(one.embedder for one in found)
    return drawing.svg(f"Fraction of relevant hits by bin of cosine scores, {names}")


def shape_of_data(corpus: CorpusProfile, queries: QueryProfile, width: float = WIDE) -> str:
    """Return histograms (SVG): lengths of documents, queries and evidence, and positions of evidence."""
    spreads = [("document, words", corpus.words), ("query, words", queries.words)]
    spreads += [("evidence, characters", queries.lengths)] if queries.lengths.count else []
    panels = len(spreads) + bool(queries.positions)
    rows, columns = (panels, 1) if width < WIDE else (-(-panels // 2), min(panels, 2))
    drawing = Drawing(width, 1.9 * rows, rows=rows, columns=columns)
    for axes in drawing.axes[panels:]:
        axes.set_visible(False)
    for axes, (name, spread) in zip(drawing.axes, spreads, strict=False):
        bars = axes.bar(spread.edges[:-1], spread.counts, np.diff(spread.edges), align="edge", color=SKY, edgecolor=INK)
        for bar, count, low, high in zip(bars, spread.counts, spread.edges, spread.edges[1:], strict=False):
            bar.set_linewidth(0.4)
            drawing.say(bar, f"{name}, {low:,.0f} to {high:,.0f}: {count:,}")
        axes.set_xscale("log")
        marks = sorted({spread.min, spread.median, spread.max})
        axes.set_xticks(marks, [f"{mark:,.0f}" for mark in marks])
        axes.minorticks_off()
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel(f"{name} (log)", fontsize=9)
    if queries.positions:
        axes, tenths = drawing.axes[panels - 1], len(queries.positions)
        bars = axes.bar(range(tenths), queries.positions, color=SKY)
        for at, (bar, count) in enumerate(zip(bars, queries.positions, strict=True)):
            drawing.say(bar, f"tenth {at + 1} of the document: {plural(count, 'span')} of evidence")
        axes.set_xticks([0, tenths - 1], ["first", "last"])
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel("evidence by tenth of its document", fontsize=9)
    return drawing.svg("Lengths of documents, queries and evidence, and positions of evidence")
