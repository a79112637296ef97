"""A comparison as text, Markdown, HTML and JSON."""

import html as escaping
import io
import json
import math
from dataclasses import asdict

from reports.compare import Comparison, Row

_HEAD = ("trial", "mean", "95 % interval", "difference", "95 % interval", "verdict", "lost mostly", "tokens")


def text(comparison: Comparison) -> str:
    """A table for the terminal."""
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=150, color_system=None).print(table(comparison))
    return out.getvalue()


def table(comparison: Comparison) -> "object":
    """The comparison as a rich renderable."""
    from rich import box
    from rich.console import Group
    from rich.table import Table

    grid = Table(title=title(comparison), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in _HEAD:
        grid.add_column(
            name, justify="left" if name in ("trial", "verdict", "lost mostly") else "right", overflow="fold"
        )
    for row in comparison.rows:
        grid.add_row(*cells(row))
    return Group(grid, *footnotes(comparison))


def title(comparison: Comparison) -> str:
    return f"{comparison.metric} against the baseline '{comparison.baseline}'"


def footnotes(comparison: Comparison) -> list[str]:
    counted = f"{comparison.queries} queries in {comparison.clusters} clusters"
    if comparison.unanswerable:
        counted += f"; {comparison.unanswerable} queries without evidence have no value and are left out"
    if comparison.unmeasured:
        counted += f"; {comparison.unmeasured} cannot have a value of {comparison.metric}"
    return [counted, *(f"note: {warning}" for warning in comparison.warnings)]


def cells(row: Row) -> tuple[str, ...]:
    """One row of the table, in the order of its columns."""
    own = row.verdict == "baseline"
    return (
        row.name,
        "withheld" if math.isnan(row.mean) else f"{row.mean:.3f}",
        _interval(row.low, row.high, ".3f"),
        "" if own or math.isnan(row.difference) else f"{row.difference:+.3f}",
        "" if own else _interval(row.difference_low, row.difference_high, "+.3f"),
        row.verdict,
        _loss(row),
        f"{row.context_tokens:.0f}",
    )


def markdown(comparison: Comparison) -> str:
    """The comparison for a run's note or a CI summary."""
    lines = [f"**{comparison.question}**", ""] if comparison.question else []
    lines += [title(comparison), "", "| " + " | ".join(_HEAD) + " |", "|" + "---|" * len(_HEAD)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells(row)) + " |" for row in comparison.rows]
    return "\n".join([*lines, "", *(f"{note}  " for note in footnotes(comparison))]) + "\n"


def html(comparison: Comparison) -> str:
    """The comparison as an HTML table, for notebooks."""
    head = "".join(f"<th>{escaping.escape(name)}</th>" for name in _HEAD)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escaping.escape(cell)}</td>" for cell in cells(row)) + "</tr>"
        for row in comparison.rows
    )
    notes = "".join(f"<p>{escaping.escape(note)}</p>" for note in footnotes(comparison))
    return f"<table><caption>{escaping.escape(title(comparison))}</caption><tr>{head}</tr>{rows}</table>{notes}"


def as_json(comparison: Comparison) -> str:
    """The comparison as JSON; what is not a number is null."""
    value = {**asdict(comparison), "rows": [{k: _finite(v) for k, v in asdict(row).items()} for row in comparison.rows]}
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _interval(low: float, high: float, form: str) -> str:
    return "–" if math.isnan(low) else f"{low:{form}} … {high:{form}}"


def _loss(row: Row) -> str:
    """The commonest first cause of lost evidence, with its share of all items."""
    total = sum(row.losses.values())
    lost = {fate: count for fate, count in row.losses.items() if fate != "found" and count}
    if not lost:
        return "nothing"
    fate = max(lost, key=lambda name: (lost[name], name))
    told = f"by {fate.removeprefix('dropped:')}" if fate.startswith("dropped:") else fate.replace("_", " ")
    return f"{told} {100 * lost[fate] / total:.0f} %"
