"""Recall over the token budget, a line per trial, as a picture."""

import io
from collections.abc import Sequence

from harness.evaluation.results import TrialResult
from harness.tracking.mlflow_fields import curves

_LINES = ("-", "--", ":", "-.")
# Okabe & Ito's palette: told apart by readers who cannot tell red from green.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")


def recall_over_budget(results: Sequence[TrialResult], question: str = "") -> bytes:
    """A PNG of `recall_vs_tokens` for every trial, best at the largest budget first in the legend."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines = {result.name: curves(result)["recall_vs_tokens"] for result in results}
    figure = Figure(figsize=(10, 5.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    ordered = sorted(lines, key=lambda name: -lines[name][-1][1])
    for at, name in enumerate(ordered):
        tokens, recall = zip(*lines[name], strict=True)
        (line,) = axes.plot(tokens, recall, marker="o", markersize=3.5, linewidth=1.6, label=name)
        line.set_color(_COLOURS[at % len(_COLOURS)])
        line.set_linestyle(_LINES[at // len(_COLOURS) % len(_LINES)])
    axes.set_xscale("log", base=2)
    axes.set_xticks(tokens, [str(step) for step in tokens])
    axes.set_ylim(0, 1)
    axes.set_xlabel("token budget (context shown to the reader)")
    axes.set_ylabel("recall of evidence")
    axes.set_title(question, loc="left", fontsize=11, wrap=True)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=120, metadata={"Software": None})
    return out.getvalue()
