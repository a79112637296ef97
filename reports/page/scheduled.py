"""The history of the regression gate as a page: its scheduled runs, what changed, and the queries that got worse."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from harness.core.plurals import plural
from reports.appearance import marked
from reports.page.document import SCHEDULED, rendered
from reports.page.figures import RunSeries, scheduled_runs, trial_key
from reports.page.parts import (
    Beside,
    Cell,
    Figure,
    Fold,
    Heading,
    Line,
    Notes,
    Part,
    Passages,
    Section,
    Shown,
    Table,
    Text,
)

Record = Mapping[str, Any]
"""The content of `gate.json`."""


def history_page(records: Sequence[Record], series: Sequence[RunSeries], margin_note: str) -> str:
    """Return the page (HTML) of scheduled runs, given their `gate.json` and the history of each check, oldest first."""
    newest = records[-1]
    title = f"{newest['experiment']}: the newest {plural(len(records), 'scheduled run')}"
    changes = [changed_since(record, before) for record, before in zip(records, [None, *records], strict=False)]
    runs = list(zip(records, changes, strict=True))[::-1]
    sections = [
        Section("history", "History", list(_history(runs, series, margin_note))),
        Section("runs", "Scheduled runs", [_run(record, changed) for record, changed in runs]),
    ]
    answer = f"Newest run, {when(newest)}: {marked(newest['verdict'])}. {_against(newest)}"
    return rendered(sections, title=title, scripts=SCHEDULED, name=title, answer=answer)


def when(record: Record) -> str:
    """Return the time of a scheduled run as text; one that is logged nowhere has none."""
    return (
        "this run" if not _time(record) else f"{datetime.fromtimestamp(_time(record) / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    )


def _time(record: Record) -> int:
    """Milliseconds since the epoch; records of version 0.1 have it in their history only."""
    return int(record.get("when") or max((runs[-1]["when"] for runs in record["history"].values() if runs), default=0))


def changed_since(record: Record, before: Record | None) -> list[str]:
    """Return what is not as it was in the scheduled run before: baseline, libraries, code and settings, a line each."""
    since = [f"{line} (since the baseline)" for line in record["changed"]]
    if before is None:
        return since
    if record["baseline"]["launch"] != before["baseline"]["launch"]:
        baseline = record["baseline"]
        return [f"a new baseline, accepted by {baseline['who']} on {baseline['when']}: {baseline['why']}", *since]
    new = [line for line in record["changed"] if line not in before["changed"]]
    return [*new, *(f"no longer: {line}" for line in before["changed"] if line not in record["changed"])]


def _against(record: Record) -> str:
    baseline = record["baseline"]
    return f"Compared with the baseline accepted by {baseline['who']} on {baseline['when']}: {baseline['why']}"


def _history(runs: Sequence[tuple[Record, list[str]]], series: Sequence[RunSeries], margin_note: str) -> Iterator[Part]:
    if series:
        yield Figure(partial(scheduled_runs, series))
    marks = ", ".join(marked(verdict) for verdict in ("fine", "worse", "cannot tell"))
    yield Text(f"{marks}; {margin_note}. A click on a run leads to the queries that got worse.", soft=True)
    head = (
        "run",
        "verdict",
        "checks not fine",
        "largest drop",
        "queries that got worse",
        "changed since the run before",
    )
    yield Table(head, [_line(record, changed) for record, changed in runs])


def _line(record: Record, changed: Sequence[str]) -> Line:
    worst = min(record["checks"], key=lambda check: _number(check["difference"]), default=None)
    drop = f"{worst['metric']} {_number(worst['difference']):+.3f}" if worst else ""
    others = sum(check["verdict"] != "fine" for check in record["checks"])
    worse = record.get("queries_worse", len({(drop["trial"], drop["query"]) for drop in record["drops"]}))
    cells = [
        Cell(when(record), _time(record), "", f"#{_anchor(record)}"),
        Cell(
            marked(record["verdict"]), None, f"left nowrap {record['verdict'] if record['verdict'] == 'worse' else ''}"
        ),
        Cell(f"{others} of {len(record['checks'])}", others),
        Cell(drop, _number(worst["difference"]) if worst else "", "nowrap"),
        Cell(str(worse), worse),
        Cell("; ".join(changed) or "nothing", None, "left long"),
    ]
    return Line(cells, trial=trial_key(f"run {_time(record)}"))


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _anchor(record: Record) -> str:
    return f"run-{_time(record)}"


def _run(record: Record, changed: Sequence[str]) -> Fold:
    """One scheduled run: its checks, what changed, and the queries that got worse."""
    head = ("trial", "metric", "baseline", "that day", "difference", "bounds", "margin", "verdict")
    rows = [
        Line(
            [
                Cell(check["trial"]),
                Cell(check["metric"], None, "left"),
                *(Cell(_shown(check[name], sign), _sort(check[name])) for name, sign in _NUMBERS),
                Cell(f"{_shown(check['low'], '+')} … {_shown(check['high'], '+')}", _sort(check["low"]), "range"),
                Cell(f"{check['margin']:g}", check["margin"]),
                Cell(marked(check["verdict"]), None, "left nowrap"),
            ]
        )
        for check in record["checks"]
    ]
    parts: list[Part] = [Text(_against(record)), Table(head, rows)]
    if record["changed"]:
        parts += [Heading("Changed since the baseline"), Notes(list(record["changed"]))]
    if changed and list(changed) != list(record["changed"]):
        parts += [Heading("Changed since the run before"), Notes(list(changed))]
    if record["drops"]:
        parts += [Heading("Queries that got worse"), *(_drop(drop) for drop in record["drops"])]
    return Fold(f"{when(record)}: {marked(record['verdict'])}, launch {record['launch']}", parts, _anchor(record))


_NUMBERS = (("baseline", ""), ("today", ""), ("difference", "+"))


def _shown(value: float | None, sign: str) -> str:
    return "–" if value is None else f"{value:{sign}.3f}"


def _sort(value: float | None) -> float | str:
    return "" if value is None else value


def _drop(drop: Mapping[str, Any]) -> Fold:
    """A query that got worse: both selections side by side."""
    change = f"{drop['metric']} {_shown(drop['before'], '')} → {_shown(drop['after'], '')}"
    parts: list[Part] = [Text(f"{drop['trial']}, query {drop['query']}: {drop['why']}", soft=True)]
    sides = drop.get("baseline_passages"), drop.get("passages")
    if any(sides):
        left, right = (
            [Heading(head), _passages(side)] for head, side in zip(("baseline", "that day"), sides, strict=True)
        )
        parts.append(Beside(left, right))
    else:
        message = "Passages are shown for the ten largest drops of each check, in the newest runs."
        parts.append(Text(message, soft=True))
    return Fold(f"{change}: {drop['text'] or drop['query']}", parts)


def _passages(side: Sequence[Mapping[str, Any]] | None) -> Part:
    if not side:
        return Text("No passage was selected, or none was recorded.", soft=True)
    return Passages(
        [
            Shown(f"{rank} · {one['doc']}:{one['start']}–{one['end']}", list(_pieces(one["text"], one["evidence"])))
            for rank, one in enumerate(side, 1)
        ]
    )


def _pieces(text: str, evidence: Sequence[Sequence[int]]) -> Iterator[tuple[str, bool]]:
    """The text in pieces, and whether each is evidence."""
    at = 0
    for low, high in evidence:
        yield from ((text[at:low], False), (text[low:high], True))
        at = high
    yield text[at:], False
