"""A comparison as text, Markdown, HTML and JSON."""

import html as escaping
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from reports.compare import Comparison, Row
from reports.plain import plain

HEAD = (
    *("trial", "mean", "95 % interval", "difference", "95 % interval", "p", "verdict", "needed", "P(best)"),
    *("lost mostly", "tokens"),
)
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
    told = ["word, p and interval of the difference follow from one test"]
    if all(row.no_interval for row in comparison.rows if row.verdict != "baseline"):
        told = []
    elif others > 1:
        told = [
            f"words, p and the intervals of differences hold for all {others} differences at once (single-step max-T)"
        ]
    if any(not math.isnan(row.needed) for row in comparison.rows):
        told.append(f"needed: queries like these that would show a difference of {comparison.effect:g} (power 80 %)")
    if comparison.margin:
        words = {"yes": "larger for", "no": "smaller for", "cannot tell": "larger or smaller, undecided, for"}
        rows = [row for row in comparison.rows if row.verdict != "baseline"]
        groups = {word: [row.name for row in rows if row.matters == matters] for matters, word in words.items()}
        parts = [f"{word} {_listed(names)}" for word, names in groups.items() if names]
        told.append(f"compared with the margin of {comparison.margin:g}, the difference is {'; '.join(parts)}")
    if comparison.final:
        return told
    if math.isnan(best.mean):
        return [*told, "too many judgments are missing to say which trial has the highest mean"]
    named = f"highest mean: '{best.name}'"
    if any(row.least < row.most for row in comparison.rows):
        named = f"highest of the least that means can be: '{best.name}'"
    if not math.isnan(best.corrected):
        named += f", {best.mean:.3f}, or {best.corrected:.3f} corrected for having been chosen on these queries"
    return [*told, named, _separable(comparison)]


def _separable(comparison: Comparison) -> str:
    names = comparison.best.not_separable
    if len(names) == 1:
        return "all others are separable from it at 95 %"
    return f"not separable from the best at 95 %, {len(names)} of {len(comparison.rows)} trials: {_listed(names)}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:7])} and {len(names) - 7} more"


def cells(row: Row) -> tuple[str, ...]:
    """One row of the table, in the order of its columns."""
    own = row.verdict == "baseline"
    return (
        row.name,
        mean_in_bounds(row),
        interval(row.low, row.high, ".3f"),
        "" if own or math.isnan(row.difference) else f"{row.difference:+.3f}",
        "" if own else difference_interval(row),
        "" if own or math.isnan(row.p) else probability(row.p),
        row.verdict,
        "" if math.isnan(row.needed) else f"{row.needed:,.0f}",
        probability(row.p_best),
        _loss(row),
        f"{row.context_tokens:.0f}",
    )


def difference_interval(row: Row) -> str:
    """The interval of the difference to the baseline, or why there is none."""
    return row.no_interval or interval(row.difference_low, row.difference_high, "+.3f")


def mean_in_bounds(row: Row) -> str:
    """The mean; where judgments are missing, with the bounds that hold whatever they would have been.

    `0.412`, `0.412 [0.402 … 0.427]`, `withheld [0.310 … 0.610]`.
    """
    mean = "withheld" if math.isnan(row.mean) else f"{row.mean:.3f}"
    return mean if row.least == row.most else f"{mean} [{row.least:.3f} … {row.most:.3f}]"


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


Beside = Sequence[tuple[str, Mapping[str, float]]]
"""Each trial's name with further values to print beside the comparison, in its order (`reports.columns.beside`)."""


def as_csv(comparison: Comparison, beside: Beside = ()) -> str:
    """The rows as CSV, a column per field, then one per value beside them, at full precision.

    A value that has the name of a field is that of the whole selection: `context_tokens` occurs once.
    """
    import pandas as pd

    fields = comparison.frame()
    values = pd.DataFrame([row for _, row in beside], index=fields.index if beside else None)
    return str(fields.join(values[[name for name in values if name not in fields]]).to_csv(index=False))


def as_json(comparison: Comparison, beside: Beside = ()) -> str:
    """The comparison as JSON, with each row's further values under `values`; what is not a number is null."""
    told = {"format": 1, **asdict(comparison)}
    for row, (_, values) in zip(told["rows"], beside, strict=False):
        row["values"] = dict(values)
    return json.dumps(plain(told), indent=1, ensure_ascii=False, allow_nan=False)


def probability(value: float) -> str:
    """A probability to two digits; never 0 or 1 where it is not.

    >>> probability(0.0004), probability(0.049), probability(0.997)
    ('<.001', '.049', '>.99')
    """
    if math.isnan(value):
        return "–"
    if 0 < value < 0.001:
        return "<.001"
    if 0.99 < value < 1:
        return ">.99"
    if value in (0, 1):
        return f"{value:.0f}"
    return f"{value:{'.3f' if value < 0.1 else '.2f'}}".lstrip("0")


def fate_words(fate: str) -> str:
    """A fate of the loss ledger in words.

    >>> fate_words("dropped:top_k"), fate_words("not_retrieved")
    ('dropped by top_k', 'not retrieved')
    """
    return f"dropped by {fate.removeprefix('dropped:')}" if fate.startswith("dropped:") else fate.replace("_", " ")


def interval(low: float, high: float, form: str) -> str:
    """`0.711 … 0.865`, each bound in the given form; why there is none where clusters are too few for one."""
    return "too few clusters" if math.isnan(low) else f"{_signed(low):{form}} … {_signed(high):{form}}"


def _signed(value: float) -> float:
    """The value, without the sign of a zero. A bound just below 0 reads -0.000, so that 0 is seen to lie inside."""
    return value + 0.0


def _loss(row: Row) -> str:
    """The commonest first cause of lost evidence, with its share of all items."""
    total = sum(row.losses.values())
    lost = {fate: count for fate, count in row.losses.items() if fate != "found" and count}
    if not lost:
        return "nothing"
    fate = max(lost, key=lambda name: (lost[name], name))
    return f"{fate_words(fate)} {100 * lost[fate] / total:.0f} %"
