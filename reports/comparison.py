"""The comparison of a launch's trials, and its forms: text, Markdown, HTML, CSV, JSON and data frame."""

import html as escaping
import io
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from harness.core.json_text import plain
from harness.core.notebook_views import view
from harness.core.plurals import plural
from reports.comparison_columns import DIFFERENCE_COLUMNS, Column, record, table_columns
from reports.comparison_row import Row

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Best:
    """The trial with the highest mean, and the mean to expect on queries that were not used to select it.

    `low` and `high` bound `corrected`: the 95 % interval of the trial's mean, shifted by the correction for selection.
    """

    name: str
    mean: float
    corrected: float
    low: float
    high: float
    not_separable: Sequence[str]
    """Names of the trials that may be the best, `name` included: at 95 % confidence, one of them is."""


@dataclass(frozen=True)
class Against:
    """The same trials compared with a further baseline; all differences to all baselines are one family."""

    baseline: str
    rows: Sequence[Row]


@dataclass(frozen=True)
class Comparison:
    """All trials of a launch on one metric, in grid order. `clusters` is the number of clusters of queries.

    `queries` are those with a value in all trials; `unanswerable` and `unmeasured` count those left out, without
    evidence or without a value for another reason. `design_effect` is the variance of a mean relative to that of
    independent queries (the median over trials). `margin` is the smallest difference that matters (0: not set),
    `effect` the difference that `Row.needed` queries would detect.
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
    """Whether this is the locked query set, on which no trial is selected."""
    warnings: Sequence[str]
    synthetic: bool = False
    """Whether a language model wrote the queries."""
    partial: str = ""
    """What part of the experiment this is; empty for a whole one."""
    against: Sequence[Against] = ()
    """The comparisons with further baselines."""

    @property
    def by_importance(self) -> list[int]:
        """Indices of the trials: the baseline first, then the best, those not separable from it, and the others."""

        def rank(at: int) -> tuple[bool, bool, bool, float]:
            row = self.rows[at]
            return not row.is_baseline, row.name != self.best.name, not row.may_be_best, -row.mean_min

        return sorted(range(len(self.rows)), key=rank)

    @property
    def equally_good(self) -> int:
        """How many other trials have the same mean as the best."""
        return sum(abs(row.mean - self.best.mean) < 1e-12 for row in self.rows if row.name != self.best.name)

    def frame(self) -> "DataFrame":
        """Returns a row per trial and a column per value; losses are counts of evidence items in `lost_…`."""
        return comparison_frame(self)

    def plot(self) -> Any:
        """Returns the figure of the differences, a `Plot`, whose points show their values in a notebook."""
        return view(self, "plot")

    def _repr_html_(self) -> str:
        return str(view(self, "table"))

    def __str__(self) -> str:
        return text(self)


def comparison_frame(comparison: "Comparison") -> "DataFrame":
    """Returns a row per trial and a column per value; losses are counts of evidence items in `lost_…` columns."""
    import pandas as pd

    evidence_outcomes = sorted({outcome for row in comparison.rows for outcome in row.losses if outcome != "found"})
    rows = []
    for row in comparison.rows:
        values = record(row)
        losses = values.pop("losses")
        values |= {"partial": comparison.partial} if comparison.partial else {}
        rows.append(
            {**values, "found": losses.get("found", 0), **{f"lost_{f}": losses.get(f, 0) for f in evidence_outcomes}}
        )
    for other in comparison.against:
        for values, row in zip(rows, other.rows, strict=True):
            values |= {f"{name} to {other.baseline}": value for name, value in _difference(row).items()}
    return pd.DataFrame(rows)


def _difference(row: Row) -> dict[str, Any]:
    """All values of a row that depend on its baseline, by name."""
    return {name: value for column in DIFFERENCE_COLUMNS for name, value in column.record(row).items()}


LISTED = 20
"""Max trials listed in a terminal."""

_ALWAYS = 5
"""The number of columns shown in the narrowest terminal."""


def text(comparison: Comparison, width: int = 170) -> str:
    """Returns the comparison as plain text, at most `width` characters wide."""
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(table(comparison, width))
    return out.getvalue()


def table(comparison: Comparison, width: int = 170) -> "object":
    """Returns the comparison as a rich renderable of at most `width` characters, with fewer columns if needed.

    Of more than `LISTED` trials, it shows the most important; see `Comparison.by_importance`.
    """
    from rich import box
    from rich.console import Group
    from rich.table import Table

    rows = listed(comparison)
    columns = _fitting(rows, width)
    grid = Table(title=title(comparison), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        justify: Literal["left", "right"] = "left" if column.left else "right"
        grid.add_column(column.title, justify=justify, overflow="fold", no_wrap=column is not columns[0])
    for row in rows:
        grid.add_row(*(column.text(row) for column in columns))
    left_out = len(table_columns()) - len(columns)
    more = [f"{left_out} more columns in a wider terminal, or with --csv"] if left_out else []
    if len(rows) < len(comparison.rows):
        which = "the baseline, the best, those not separable from it, then by mean"
        more.append(f"{len(rows)} of {len(comparison.rows)} trials: {which}; `harness compare --csv` lists all")
    further = [_smaller_table(other, {row.name for row in rows}) for other in comparison.against]
    return Group(grid, *more, *further, *footnotes(comparison, columns))


def _smaller_table(other: Against, names: Collection[str]) -> Any:
    """The differences of the trials of these names to a further baseline."""
    from rich import box
    from rich.table import Table

    columns = [table_columns()[0], *DIFFERENCE_COLUMNS]
    title = f"against the baseline '{other.baseline}'"
    grid = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        grid.add_column(column.title, justify="left" if column.left else "right", overflow="fold")
    for row in other.rows:
        if row.name in names:
            grid.add_row(*(column.text(row) for column in columns))
    return grid


def listed(comparison: Comparison) -> list[Row]:
    """Returns the rows that a terminal shows: all in grid order, or of too many the most important."""
    if len(comparison.rows) <= LISTED:
        return list(comparison.rows)
    return [comparison.rows[at] for at in comparison.by_importance[:LISTED]]


def _fitting(rows: Sequence[Row], width: int) -> list[Column]:
    """The columns that fit; the least important are left out first. The trial's name may wrap."""
    columns = table_columns()
    widths = {column.name: max(len(column.title), *(len(column.text(row)) for row in rows)) for column in columns}
    widths["trial"] = min(widths["trial"], 30)
    for column in sorted(columns, key=lambda column: -column.rank)[:-_ALWAYS]:
        if sum(widths[one.name] for one in columns) + 3 * len(columns) <= width:
            break
        columns.remove(column)
    return columns


def title(comparison: Comparison) -> str:
    """Returns the title of the table: metric and baseline."""
    partial = f"PARTIAL ({comparison.partial}): " if comparison.partial else ""
    return f"{partial}{comparison.metric} against the baseline '{comparison.baseline}'"


def footnotes(comparison: Comparison, columns: Sequence[Column] | None = None) -> list[str]:
    """Returns the lines below a table: the queries counted, the tests used, the trials that may be best, warnings.

    `columns` are those that the table shows (default: all).
    """
    shown = {column.name for column in (table_columns() if columns is None else columns)}
    explained = _explained(comparison, needed="queries_needed" in shown)
    return [_counted(comparison), *explained, *(f"note: {warning}" for warning in comparison.warnings)]


def _counted(comparison: Comparison) -> str:
    counted = plural(comparison.queries, "query") + (" of the locked query set" if comparison.final else "")
    if comparison.clusters_by == "documents":
        counted += f" in {plural(comparison.clusters, 'cluster')} by document"
        if not math.isnan(comparison.design_effect):
            counted += f" (design effect {comparison.design_effect:.1f})"
    else:
        counted += ", each its own cluster: the results apply to further questions on the same documents"
    if comparison.unanswerable:
        counted += f"; {_queries(comparison.unanswerable, 'without evidence')} excluded"
    if comparison.unmeasured:
        counted += f"; {_queries(comparison.unmeasured, f'without a value of {comparison.metric}')} excluded"
    return counted


def _queries(count: int, which: str) -> str:
    return f"{plural(count, 'query')} {which} {'is' if count == 1 else 'are'}"


def _explained(comparison: Comparison, *, needed: bool) -> list[str]:
    others, best = (len(comparison.rows) - 1) * (1 + len(comparison.against)), comparison.best
    if not others:
        return []
    lines = ["verdict, p and the interval of the difference come from the same test"]
    if all(row.no_interval for row in comparison.rows if row.verdict != "baseline"):
        lines = []
    elif others > 1:
        lines = [
            f"verdicts, p and intervals of differences are adjusted for all {others} comparisons (single-step max-T)"
        ]
    if needed and any(not math.isnan(row.needed) for row in comparison.rows):
        lines.append(
            f"needed: number of similar queries to detect a difference of {comparison.effect:g} with 80 % power"
        )
    if comparison.margin:
        words = {"yes": "larger for", "no": "smaller for", "cannot tell": "undecided for"}
        rows = [row for row in comparison.rows if row.verdict != "baseline"]
        groups = {word: [row.name for row in rows if row.matters == matters] for matters, word in words.items()}
        parts = [f"{word} {_listed(names)}" for word, names in groups.items() if names]
        lines.append(f"compared with the margin of {comparison.margin:g}, the difference is {'; '.join(parts)}")
    if comparison.final:
        return lines
    if math.isnan(best.mean):
        return [*lines, "too many judgments are missing to say which trial has the highest mean"]
    equal = f" and {plural(comparison.equally_good, 'other trial')}" if comparison.equally_good else ""
    named, over = f"highest mean: '{best.name}'{equal}", ""
    if any(row.mean_min < row.mean_max for row in comparison.rows):
        named = f"highest mean, with missing values counted at their worst: '{best.name}'"
        over = " over complete queries"
    if not math.isnan(best.corrected):
        named += f", {best.mean:.3f}{over}, {best.corrected:.3f} corrected for selection on these queries"
    return [*lines, named, _separable(comparison)]


def _separable(comparison: Comparison) -> str:
    names = comparison.best.not_separable
    if len(names) == 1:
        return "all other trials are separable from it at 95 % (each tested against all others, not only the baseline)"
    tested = f"each tested against all others, not only the baseline; {len(names)} of {len(comparison.rows)} trials"
    return f"not separable from the best at 95 % ({tested}): {_listed(names)}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:7])} and {len(names) - 7} more"


def markdown(comparison: Comparison) -> str:
    """Returns the comparison as Markdown, for the note of a logged launch or a CI summary."""
    lines = [f"**{comparison.question}**", ""] if comparison.question else []
    lines += [title(comparison), "", *_markdown_table(comparison.rows, table_columns())]
    for other in comparison.against:
        columns = [table_columns()[0], *DIFFERENCE_COLUMNS]
        lines += ["", f"against the baseline '{other.baseline}'", "", *_markdown_table(other.rows, columns)]
    return "\n".join([*lines, "", *(f"{note}  " for note in footnotes(comparison))]) + "\n"


def _markdown_table(rows: Sequence[Row], columns: Sequence[Column]) -> list[str]:
    head = " | ".join(column.title for column in columns)
    lines = [f"| {head} |", "|" + "---|" * len(columns)]
    for row in rows:
        lines.append("| " + " | ".join(column.text(row).replace("|", "\\|") for column in columns) + " |")
    return lines


def html(comparison: Comparison) -> str:
    """Returns the comparison as a plain HTML table, for notebooks that show no frames."""
    head = "".join(f"<th>{escaping.escape(column.title)}</th>" for column in table_columns())
    rows = "".join(
        "<tr>" + "".join(f"<td>{escaping.escape(column.text(row))}</td>" for column in table_columns()) + "</tr>"
        for row in comparison.rows
    )
    notes = "".join(f"<p>{escaping.escape(note)}</p>" for note in footnotes(comparison))
    return f"<table><caption>{escaping.escape(title(comparison))}</caption><tr>{head}</tr>{rows}</table>{notes}"


TrialValues = Sequence[tuple[str, Mapping[str, float]]]
"""Name and further values of each trial, in the order of the comparison (`reports.columns.trial_values`)."""


def as_csv(comparison: Comparison, trial_values: TrialValues = ()) -> str:
    """Returns the rows as CSV at full precision: a column per value of a row, then one per further value.

    A further value with the name of a field, such as `context_tokens`, is not repeated.
    """
    import pandas as pd

    frame = comparison.frame()
    values = pd.DataFrame([row for _, row in trial_values], index=frame.index if trial_values else None)
    return str(frame.join(values[[name for name in values if name not in frame]]).to_csv(index=False))


def as_json(comparison: Comparison, trial_values: TrialValues = ()) -> str:
    """Returns the comparison as JSON, with each row's further values under `values`; NaN and infinity become null."""
    rows = [record(row) for row in comparison.rows]
    for row, (_, values) in zip(rows, trial_values, strict=False):
        row["values"] = dict(values)
    content = {field.name: getattr(comparison, field.name) for field in fields(comparison)}
    content |= {"rows": rows, "best": asdict(comparison.best)}
    content["against"] = [
        {"baseline": other.baseline, "rows": [{"name": row.name, **_difference(row)} for row in other.rows]}
        for other in comparison.against
    ]
    return json.dumps(plain({"format": 1, **content}), indent=1, ensure_ascii=False, allow_nan=False)
