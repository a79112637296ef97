"""Tables of trials, whose rows know their trial, as the figures' elements do."""

import math
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from harness.experiment.trial_names import varied
from reports.comparison import Against, Comparison
from reports.comparison_columns import DIFFERENCE_COLUMNS, table_columns
from reports.page.figures import trial_key
from reports.page.parts import Cell, Line, Table


def comparison_table(comparison: Comparison, params: Sequence[Mapping[str, str]], link: str = "#b=") -> Table:
    """Return the table of a comparison, grouped by what varies in `params`; names of trials link to the explorer."""
    columns = table_columns(comparison.margin)
    head = [column.title.replace("…", f"{comparison.margin:g}") for column in columns]
    factors = varied(params)
    lines = []
    for row, settings in sorted(zip(comparison.rows, params, strict=True), key=lambda both: -both[0].mean_min):
        cells = [Cell(column.text(row), column.sort_key(row), column.mark(row)) for column in columns]
        cells[0] = cells[0]._replace(link=f"{link}{quote(row.name)}" if link else "")
        values = [settings.get(name, "–") for name in factors]
        lines.append(Line(cells, "baseline" if row.is_baseline else "", trial_key(row.name), values))
    return Table(head, lines, comparison.metric, factors=factors)


def difference_table(other: Against, metric: str) -> Table:
    """Return the differences of all trials to a further baseline."""
    lines = []
    for row in sorted(other.rows, key=lambda row: -row.mean_min):
        cells = [Cell(column.text(row), column.sort_key(row), column.mark(row)) for column in DIFFERENCE_COLUMNS]
        line = trial_line(row.name, cells)
        lines.append(line._replace(mark="baseline") if row.is_baseline else line)
    return Table(["trial", *(column.title for column in DIFFERENCE_COLUMNS)], lines, metric)


def trial_line(name: str, cells: Sequence[Cell], marks: Sequence[str] = ()) -> Line:
    """Return a row of a trial's numbers; `marks` are further CSS classes of the cells."""
    marks = marks or [""] * len(cells)
    shaded = [cell._replace(mark=f"{cell.mark} {mark}".strip()) for cell, mark in zip(cells, marks, strict=True)]
    return Line([Cell(name, name), *shaded], trial=trial_key(name))


def heat(values: Sequence[float]) -> list[str]:
    """Return the shade of each fraction, in ten steps."""
    return ["" if math.isnan(value) else f"heat{min(9, int(10 * value))}" for value in values]


def number(value: float) -> float | str:
    """Return the sort key of a number; empty for NaN."""
    return "" if math.isnan(value) else round(value, 6)
