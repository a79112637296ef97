"""The comparison of a launch's trials: what was found, and how it reads as text, HTML, CSV, JSON and data frame."""

import html as escaping
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from reports.comparison_row import HEAD, Row, cells
from reports.plain import plain

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Best:
    """The trial with the greatest mean, and the mean to expect of it on queries it was not chosen by.

    `low` and `high` bound `corrected`: the trial's own interval, moved by what it owes to having been chosen.
    """

    name: str
    mean: float
    corrected: float
    low: float
    high: float
    not_separable: Sequence[str]
    """All trials that cannot be told from the best at 95 %, itself included: one of them is, whichever."""


@dataclass(frozen=True)
class Comparison:
    """All trials of a launch on one metric, in grid order. `clusters` is the number of independent units of queries.

    `design_effect` is how many times larger the variance of a mean is than if queries were independent (the median
    over trials); `effect` the difference that `Row.needed` is about.
    """

    question: str
    metric: str
    baseline: str
    rows: Sequence[Row]
    best: Best
    queries: int
    unanswerable: int
    unmeasured: int
    clusters: int
    clusters_by: str
    design_effect: float
    margin: float
    effect: float
    final: bool
    """Whether this is the locked query set, where nothing is chosen any more."""
    warnings: Sequence[str]
    synthetic: bool = False
    """Whether a model wrote the queries."""

    def frame(self) -> "DataFrame":
        """A row per trial, a column per field of `Row`; losses as `lost_…` columns, counts of evidence items."""
        return comparison_frame(self)

    def _repr_html_(self) -> str:
        return html(self)

    def __str__(self) -> str:
        return text(self)


def comparison_frame(comparison: "Comparison") -> "DataFrame":
    """A row per trial, a column per field; losses as `lost_…` columns, 0 where a trial has none of a kind."""
    import pandas as pd

    evidence_outcomes = sorted({outcome for row in comparison.rows for outcome in row.losses if outcome != "found"})
    rows = []
    for row in comparison.rows:
        text = asdict(row)
        losses = text.pop("losses")
        rows.append(
            {**text, "found": losses.get("found", 0), **{f"lost_{f}": losses.get(f, 0) for f in evidence_outcomes}}
        )
    return pd.DataFrame(rows)


_DISPENSABLE = (10, 9, 8, 7, 2, 5)
"""Columns to do without in a narrow terminal: tokens, lost mostly, P(best), needed, the mean's interval, p."""


def text(comparison: Comparison, width: int = 170) -> str:
    """A table for the terminal."""
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(table(comparison, width))
    return out.getvalue()


def table(comparison: Comparison, width: int = 170) -> "object":
    """The comparison as a rich renderable that fits a width in characters, with fewer columns where it must."""
    from rich import box
    from rich.console import Group
    from rich.table import Table

    rows = [cells(row) for row in comparison.rows]
    shown = _fitting(rows, width)
    grid = Table(title=title(comparison), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for at in shown:
        left = HEAD[at] in ("trial", "verdict", "lost mostly")
        grid.add_column(HEAD[at], justify="left" if left else "right", overflow="fold", no_wrap=at > 0)
    for row in rows:
        grid.add_row(*(row[at] for at in shown))
    left_out = len(HEAD) - len(shown)
    more = [f"{left_out} more columns in a wider terminal, or with --csv"] if left_out else []
    return Group(grid, *more, *footnotes(comparison))


def _fitting(rows: Sequence[tuple[str, ...]], width: int) -> list[int]:
    """Numbers of the columns that fit, the least important left out first; the trial's name may wrap."""
    widths = [max(map(len, column)) for column in zip(HEAD, *rows, strict=True)]
    widths[0] = min(widths[0], 30)
    shown = list(range(len(HEAD)))
    for at in _DISPENSABLE:
        if sum(widths[n] for n in shown) + 3 * len(shown) <= width:
            break
        shown.remove(at)
    return shown


def title(comparison: Comparison) -> str:
    return f"{comparison.metric} against the baseline '{comparison.baseline}'"


def footnotes(comparison: Comparison) -> list[str]:
    """What must be said beside the table: what was counted, what the words mean, which trial may be the best."""
    return [_counted(comparison), *_explained(comparison), *(f"note: {warning}" for warning in comparison.warnings)]


def _counted(comparison: Comparison) -> str:
    counted = f"{comparison.queries} queries"
    if comparison.clusters_by == "documents":
        counted += f" in {comparison.clusters} clusters, the documents they are about"
        if not math.isnan(comparison.design_effect):
            counted += f" (design effect {comparison.design_effect:.1f})"
    else:
        counted += ", each taken by itself: what is claimed is about further questions on the same documents"
    if comparison.unanswerable:
        counted += f"; {comparison.unanswerable} queries without evidence have no value and are left out"
    if comparison.unmeasured:
        counted += f"; {comparison.unmeasured} cannot have a value of {comparison.metric}"
    return counted


def _explained(comparison: Comparison) -> list[str]:
    others, best = len(comparison.rows) - 1, comparison.best
    if not others:
        return []
    lines = ["word, p and interval of the difference follow from one test"]
    if all(row.no_interval for row in comparison.rows if row.verdict != "baseline"):
        lines = []
    elif others > 1:
        lines = [
            f"words, p and the intervals of differences hold for all {others} differences at once (single-step max-T)"
        ]
    if any(not math.isnan(row.needed) for row in comparison.rows):
        lines.append(f"needed: queries like these that would show a difference of {comparison.effect:g} (power 80 %)")
    if comparison.margin:
        words = {"yes": "larger for", "no": "smaller for", "cannot tell": "larger or smaller, undecided, for"}
        rows = [row for row in comparison.rows if row.verdict != "baseline"]
        groups = {word: [row.name for row in rows if row.matters == matters] for matters, word in words.items()}
        parts = [f"{word} {_listed(names)}" for word, names in groups.items() if names]
        lines.append(f"compared with the margin of {comparison.margin:g}, the difference is {'; '.join(parts)}")
    if comparison.final:
        return lines
    if math.isnan(best.mean):
        return [*lines, "too many judgments are missing to say which trial has the highest mean"]
    named = f"highest mean: '{best.name}'"
    if any(row.mean_min < row.mean_max for row in comparison.rows):
        named = f"highest of the least that means can be: '{best.name}'"
    if not math.isnan(best.corrected):
        named += f", {best.mean:.3f}, or {best.corrected:.3f} corrected for having been chosen on these queries"
    return [*lines, named, _separable(comparison)]


def _separable(comparison: Comparison) -> str:
    names = comparison.best.not_separable
    if len(names) == 1:
        return "all others are separable from it at 95 %"
    return f"not separable from the best at 95 %, {len(names)} of {len(comparison.rows)} trials: {_listed(names)}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:7])} and {len(names) - 7} more"


def markdown(comparison: Comparison) -> str:
    """The comparison for a run's note or a CI summary."""
    lines = [f"**{comparison.question}**", ""] if comparison.question else []
    lines += [title(comparison), "", "| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells(row)) + " |" for row in comparison.rows]
    return "\n".join([*lines, "", *(f"{note}  " for note in footnotes(comparison))]) + "\n"


def html(comparison: Comparison) -> str:
    """The comparison as an HTML table, for notebooks."""
    head = "".join(f"<th>{escaping.escape(name)}</th>" for name in HEAD)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escaping.escape(cell)}</td>" for cell in cells(row)) + "</tr>"
        for row in comparison.rows
    )
    notes = "".join(f"<p>{escaping.escape(note)}</p>" for note in footnotes(comparison))
    return f"<table><caption>{escaping.escape(title(comparison))}</caption><tr>{head}</tr>{rows}</table>{notes}"


TrialValues = Sequence[tuple[str, Mapping[str, float]]]
"""Each trial's name with further values, in the order of the comparison (`reports.columns.trial_values`)."""


def as_csv(comparison: Comparison, trial_values: TrialValues = ()) -> str:
    """The rows as CSV, a column per field, then one per value beside them, at full precision.

    A value that has the name of a field is that of the whole selection: `context_tokens` occurs once.
    """
    import pandas as pd

    fields = comparison.frame()
    values = pd.DataFrame([row for _, row in trial_values], index=fields.index if trial_values else None)
    return str(fields.join(values[[name for name in values if name not in fields]]).to_csv(index=False))


def as_json(comparison: Comparison, trial_values: TrialValues = ()) -> str:
    """The comparison as JSON, with each row's further values under `values`; what is not a number is null."""
    record = {"format": 1, **asdict(comparison)}
    for row, (_, values) in zip(record["rows"], trial_values, strict=False):
        row["values"] = dict(values)
    return json.dumps(plain(record), indent=1, ensure_ascii=False, allow_nan=False)
