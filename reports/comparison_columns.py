"""The columns of a comparison, each declared once: for terminal, Markdown, CSV, JSON, data frame, page and tracker."""

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reports.appearance import marked
from reports.comparison_row import Row
from reports.numbers import interval, outcome_words, probability


@dataclass(frozen=True)
class Column:
    """One column: its name, what it shows of a row, and where.

    A column with a `title` is part of every table. Its `fields` of `Row`, or `value` under its own name, are columns of
    CSV, JSON and data frame.
    """

    name: str
    title: str = ""
    rank: int = 0
    """Its importance, 1 for the most important. A narrow terminal leaves out the least important columns."""
    meaning: str = ""
    text: Callable[[Row], str] = lambda row: ""
    """The cell as text."""
    fields: tuple[str, ...] = ()
    value: Callable[[Row], Any] | None = None
    """The cell as a value, for a column that is not made of fields of `Row`."""
    left: bool = False
    """Whether its text is left-aligned."""
    mark: Callable[[Row], str] = lambda row: ""
    """The CSS classes of the cell on the page."""
    tag: Callable[[Row], str] | None = None
    """The cell as a tag of the trial in a tracker's table of trials; None for no tag."""
    width: int = 0
    """The width in pixels that the tag needs in such a table; 0 for any."""
    needs_margin: bool = False
    """Whether only the page shows it, and only if the experiment has a margin, which replaces `…` in its title."""

    def record(self, row: Row) -> dict[str, Any]:
        """Return the values of the cell by name."""
        if self.value is not None:
            return {self.name: self.value(row)}
        return {field: getattr(row, field) for field in self.fields}

    def sort_key(self, row: Row) -> Any:
        """Return what the page sorts the cell by: its first value if that is a number or text, else its text."""
        first = next(iter(self.record(row).values()), "")
        if isinstance(first, float | int):
            return "" if math.isnan(first) else round(first, 6)
        return first if isinstance(first, str) else self.text(row)


def record(row: Row) -> dict[str, Any]:
    """Return all values of a row by name."""
    return {name: value for column in COLUMNS for name, value in column.record(row).items()}


def table_columns(margin: float = 0.0) -> list[Column]:
    """Return the columns of a table, in their order; the page's shows the experiment's `margin`, if there is one."""
    return [column for column in COLUMNS if column.title and (margin or not column.needs_margin)]


def tagged() -> list[Column]:
    """Return the columns that are tags of a trial, the most important first."""
    return sorted((column for column in COLUMNS if column.tag), key=lambda column: column.rank)


def mean_in_bounds(row: Row) -> str:
    """Return the mean, and if judgments are missing, its bounds for all possible values of them.

    `0.412`, `0.412 [0.402 … 0.427]`, `withheld [0.310 … 0.610]`.
    """
    mean = "withheld" if math.isnan(row.mean) else f"{row.mean:.3f}"
    return mean if row.mean_min == row.mean_max else f"{mean} [{row.mean_min:.3f} … {row.mean_max:.3f}]"


def _mean_interval(row: Row) -> str:
    return interval(row.low, row.high, ".3f")


def _difference(row: Row) -> str:
    return "" if row.is_baseline or math.isnan(row.difference) else f"{row.difference:+.3f}"


def _difference_interval(row: Row) -> str:
    """The interval of the difference to the baseline, or the reason why there is none."""
    if row.is_baseline:
        return ""
    return row.no_interval or interval(row.difference_low, row.difference_high, "+.3f")


def _difference_tag(row: Row) -> str:
    return f"{_difference(row)} ({_difference_interval(row)})" if _difference(row) else "–"


def _p(row: Row) -> str:
    return "" if row.is_baseline or math.isnan(row.p) else probability(row.p)


def _verdict_mark(row: Row) -> str:
    return f"left nowrap {row.verdict}" if row.verdict in ("better", "worse") else "left nowrap"


def _loss(row: Row) -> str:
    """The most frequent first cause of lost evidence, with its percentage of all evidence items."""
    total = sum(row.losses.values())
    lost = {outcome: count for outcome, count in row.losses.items() if outcome != "found" and count}
    if not lost:
        return "nothing"
    outcome = max(lost, key=lambda name: (lost[name], name))
    return f"{outcome_words(outcome)} {100 * lost[outcome] / total:.0f} %"


COLUMNS = (
    Column("trial", "trial", 1, "the trial's name", lambda row: row.name, ("name",), left=True),
    Column(
        name="mean",
        title="mean",
        rank=2,
        meaning="mean over the queries for which the metric is defined",
        text=mean_in_bounds,
        fields=("mean", "mean_min", "mean_max"),
    ),
    Column(
        name="interval",
        title="95 % interval",
        rank=7,
        meaning="confidence interval of the mean, from a cluster bootstrap (a cluster: a document with its queries)",
        text=_mean_interval,
        fields=("low", "high"),
        mark=lambda row: "range",
        tag=_mean_interval,
        width=130,
    ),
    Column(
        name="difference",
        title="difference",
        rank=4,
        meaning="mean difference to the baseline, paired by query; its 95 % confidence interval is simultaneous over "
        "all trials of the table",
        text=_difference,
        fields=("difference",),
        tag=_difference_tag,
        width=200,
    ),
    Column(
        name="difference_interval",
        title="95 % interval",
        rank=5,
        text=_difference_interval,
        fields=("difference_low", "difference_high", "alone_low", "alone_high"),
        mark=lambda row: "range",
    ),
    Column(
        name="p",
        title="p",
        rank=6,
        meaning="p-value of the difference, adjusted for multiple comparisons: the probability that any trial shows a "
        "difference this large if no trial differs from the baseline",
        text=_p,
        fields=("p", "p_alone", "p_holm"),
        tag=lambda row: _p(row) or "–",
    ),
    Column(
        name="verdict",
        title="verdict",
        rank=3,
        meaning='better or worse if p is at most .05, else cannot tell: not "equal", but undecided by these queries; '
        "also if there are too few clusters for any test, or a mean is withheld for missing values",
        text=lambda row: marked(row.verdict),
        fields=("verdict", "no_interval"),
        left=True,
        mark=_verdict_mark,
        tag=lambda row: marked(row.verdict),
        width=110,
    ),
    Column(
        name="matters",
        title="beyond …",
        meaning="whether the difference is certainly larger than the experiment's margin (yes), certainly not (no), or "
        "undecided (cannot tell)",
        text=lambda row: row.matters,
        fields=("matters",),
        left=True,
        mark=lambda row: "left nowrap",
        needs_margin=True,
    ),
    Column(
        name="queries_needed",
        title="needed",
        rank=8,
        meaning="number of similar queries needed to detect a difference of the experiment's `effect` with 80 % power",
        text=lambda row: "" if math.isnan(row.needed) else f"{row.needed:,.0f}",
        fields=("needed",),
    ),
    Column(
        name="p_best",
        title="P(best)",
        rank=9,
        meaning="fraction of bootstrap resamples in which the trial has the highest mean",
        text=lambda row: probability(row.p_best),
        fields=("p_best", "may_be_best"),
        tag=lambda row: probability(row.p_best),
    ),
    Column(
        name="lost_mostly",
        title="lost mostly",
        rank=10,
        meaning="the most frequent reason why evidence is missed, with the percentage of all evidence items",
        text=_loss,
        fields=("losses",),
        left=True,
        mark=lambda row: "left",
    ),
    Column(
        name="tokens",
        title="tokens",
        rank=11,
        meaning="mean number of tokens of the whole selection, including contexts",
        text=lambda row: f"{row.context_tokens:.0f}",
        fields=("context_tokens",),
    ),
    Column("complete", fields=("complete",)),
)
"""All columns of a comparison, in the order of its tables."""

DIFFERENCE_COLUMNS = [
    column for column in COLUMNS if column.name in ("difference", "difference_interval", "p", "verdict")
]
"""Those that depend on the baseline, for a further one."""


def glossary() -> str:
    """Return the meanings of the columns, a paragraph each, for the page."""
    explained = {column.title: column.meaning for column in COLUMNS if column.meaning and column.name != "trial"}
    width = max(map(len, explained)) + 3
    indent = " " * width
    return "".join(
        textwrap.fill(f"{title:<{width}}{meaning}", 120, subsequent_indent=indent, break_long_words=False) + "\n"
        for title, meaning in explained.items()
    )
