"""What raw scores mean, as a table, a picture and JSON."""

import io
import json
import math
from collections.abc import Sequence
from dataclasses import asdict

from harness.evaluation.results import ScoreBin, ScoreBins
from reports.plain import plain


def text(found: Sequence[ScoreBins]) -> str:
    """A table per embedder, for the terminal."""
    parts = []
    for one in found:
        lines = [
            f"{one.embedder}: {one.queries} queries with evidence, {one.chunkings} chunkings",
            f"{'cosine':<14}{'hits':>8}{'relevant':>10}   share (95 % interval)",
        ]
        lines += [f"{label(band):<14}{band.hits:>8}{band.relevant:>10}   {_share(band)}" for band in one.bands]
        parts.append("\n".join(lines))
    note = "relevant: by the evidence of the query set; what nobody has marked counts as irrelevant"
    return "\n\n".join([*parts, note])


def label(band: ScoreBin) -> str:
    """The band in words: `0.6 to 0.7`, `from 0.9`, `below 0.3`."""
    if math.isinf(band.high):
        return f"from {band.low:g}"
    return f"below {band.high:g}" if math.isinf(band.low) else f"{band.low:g} to {band.high:g}"


def _share(band: ScoreBin) -> str:
    return f"{band.rate:.3f} ({band.rate_low:.3f} … {band.rate_high:.3f})" if band.hits else "–"


def as_json(found: Sequence[ScoreBins]) -> str:
    """Everything as JSON; bounds without end and shares of nothing are null."""
    value = [plain(asdict(one) | {"bands": one.bands}) for one in found]
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)


def picture(found: Sequence[ScoreBins]) -> bytes:
    """A PNG: the share of relevant hits by band, with intervals and counts; a row of bars per embedder."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2 * len(found)), layout="constrained")
    FigureCanvasAgg(figure)
    for at, one in enumerate(found, 1):
        axes = figure.add_subplot(len(found), 1, at)
        bands = one.bands[::-1]
        for place, band in enumerate(bands):
            if band.hits:
                below, above = band.rate - band.rate_low, band.rate_high - band.rate
                axes.bar(place, band.rate, color="#56B4E9", width=0.8)
                axes.errorbar(place, band.rate, [[below], [above]], color="#333333", capsize=3, linewidth=1)
        axes.set_xticks(range(len(bands)), [f"{label(band)}\n{band.hits} hits" for band in bands], fontsize=8)
        axes.set_xlim(-0.6, len(bands) - 0.4)
        axes.set_ylim(0, 1)
        axes.set_ylabel("share relevant")
        axes.set_title(f"{one.embedder}, {one.queries} queries", loc="left", fontsize=10)
        axes.grid(axis="y", alpha=0.25)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[-1].set_xlabel("cosine of query and chunk")
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=120, metadata={"Software": None})
    return out.getvalue()
