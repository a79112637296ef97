"""The result of the regression gate, and its forms for people: Markdown and HTML."""

import html as escaping
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from harness.core.notebook_views import view
from harness.core.plurals import plural
from harness.evaluation.baseline import Baseline
from harness.evaluation.stats import FEW_CLUSTERS
from harness.running.launch_result import Launch
from harness.tracking import Links, ScheduledRun, TrendPoint
from reports.gate_passages import PassageRecord
from reports.page.figures import RunSeries, scheduled_runs, standalone

if TYPE_CHECKING:
    from pandas import DataFrame

Verdict = Literal["fine", "worse", "cannot tell"]

CODES: Mapping[Verdict, float] = {"fine": 0, "worse": 1, "cannot tell": 3}
"""Exit code of each verdict, also its value in a trial's trend."""


@dataclass(frozen=True)
class Check:
    """One metric of one trial: its mean in the baseline and today, and the paired difference with confidence bounds.

    The bounds are simultaneous over all checks, each side at the gate's alpha; they are NaN if there are too few
    clusters. `complete` counts the queries with a value today, out of `queries`.
    """

    trial: str
    metric: str
    baseline: float
    today: float
    difference: float
    low: float
    high: float
    margin: float
    complete: int
    queries: int
    verdict: Verdict


@dataclass(frozen=True)
class Drop:
    """A query whose score dropped, and why: the evidence outcomes in the baseline and today."""

    trial: str
    metric: str
    query: str
    text: str
    before: float
    after: float
    why: str
    baseline_passages: Sequence[PassageRecord] = ()
    """What was selected when the baseline was accepted; empty if that was not recorded, or for the smaller drops."""
    passages: Sequence[PassageRecord] = ()
    """What is selected today."""


@dataclass(frozen=True)
class GateResult:
    """The result of the gate for a launch: checks, queries whose score dropped, what changed, and the trend."""

    experiment: str
    launch: Launch
    baseline: Baseline
    alpha: float
    checks: Sequence[Check]
    drops: Sequence[Drop]
    queries_worse: int
    """How many queries of the trials have a lower score than in the baseline, in checks that are not fine."""
    changed: Sequence[str]
    """Libraries, code and settings that differ from those of the baseline, a line each."""
    history: Mapping[str, Sequence[ScheduledRun]]
    when: int = 0
    """The time of the run, in milliseconds since the epoch."""
    earlier: Sequence[Mapping[str, Any]] = ()
    """The content of `gate.json` of earlier scheduled runs, oldest first."""
    logged: Links = field(default_factory=dict)
    """Links to where the scheduled runs can be seen, by destination."""

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all checks: worse, then cannot tell, then fine."""
        words = {check.verdict for check in self.checks}
        return "worse" if "worse" in words else "cannot tell" if "cannot tell" in words else "fine"

    @property
    def exit_code(self) -> int:
        """The exit code of the verdict: 0, 1 or 3."""
        return int(CODES[self.verdict])

    def frame(self) -> "DataFrame":
        """Returns a row per check and a column per field of `Check`."""
        import pandas as pd

        return pd.DataFrame(self.checks)

    def _repr_html_(self) -> str:
        return str(view(self, "history"))

    def __str__(self) -> str:
        return markdown(self)


HEAD = ("trial", "metric", "baseline", "today", "difference", "bounds", "margin", "queries", "verdict")
SAYS = {
    "fine": "fine, as good as the baseline within the margin",
    "worse": "worse than the baseline",
    "cannot tell": "cannot tell whether it is as good as the baseline",
}

LISTED = 10
"""Max queries listed for each check, with their passages; `gate.json` has more."""


def title(found: GateResult) -> str:
    """Returns the verdict in a line."""
    return f"{found.experiment}: {SAYS[found.verdict]}"


def against(found: GateResult) -> str:
    """Returns who accepted the baseline, when, and why."""
    baseline = found.baseline
    return f"compared with the baseline accepted by {baseline.who} on {baseline.when}: {baseline.why}"


def cells(check: Check) -> tuple[str, ...]:
    """Returns one check as text, in the order of the table's columns."""
    bounds = "too few clusters" if math.isnan(check.low) else f"{check.low:+.3f} … {check.high:+.3f}"
    return (
        check.trial,
        check.metric,
        f"{check.baseline:.3f}",
        "withheld" if math.isnan(check.today) else f"{check.today:.3f}",
        f"{check.difference:+.3f}",
        bounds,
        f"{check.margin:g}",
        f"{check.complete}/{check.queries}",
        check.verdict,
    )


def notes(found: GateResult) -> list[str]:
    """Returns the notes below the table: how to read the bounds, and warnings."""
    bounds = f"bounds: simultaneous over all {len(found.checks)} checks" if len(found.checks) > 1 else "bounds"
    words = "fine: above minus the margin; worse: below 0, and not fine"
    lines = [f"{bounds}, each side at {100 * (1 - found.alpha):.0f} % confidence; {words}"]
    clusters = len(set(found.launch.results[0].clusters))
    if found.launch.experiment.compare.clusters == "documents" and clusters < FEW_CLUSTERS:
        lines.append(f"only {plural(clusters, 'cluster')} of queries: the bounds are approximate")
    if any(math.isnan(check.low) for check in found.checks):
        lines.append(
            "too few documents for bounds; `compare: {clusters: queries}` tests further queries on these documents"
        )
    return [*lines, *found.launch.warnings]


def _changed(found: GateResult) -> list[str]:
    """What changed since the baseline: the likely causes."""
    return [f"- changed since: {line}" for line in found.changed]


def by_urgency(found: GateResult) -> list[Check]:
    """Returns the checks: those that are worse first, then those that cannot tell, the fine ones last."""
    order: Sequence[Verdict] = ("worse", "cannot tell", "fine")
    return sorted(found.checks, key=lambda check: order.index(check.verdict))


def markdown(found: GateResult) -> str:
    """Returns the result as Markdown, for a CI summary."""
    lines = [f"## {plain_cell(title(found))}", "", plain_cell(against(found)), ""]
    if found.changed:
        lines += [*map(plain_cell, _changed(found)), ""]
    fine = [check for check in found.checks if check.verdict == "fine"]
    others = sorted(
        (check for check in found.checks if check.verdict != "fine"), key=lambda check: check.verdict != "worse"
    )
    if others:
        lines += _table(HEAD, [cells(check) for check in others])
    if found.drops:
        shown = _worst(found)
        lines += ["", "### Queries that got worse", "", *_table(_DROPS, [_drop_cells(drop) for drop in shown])]
        if len(shown) < len(found.drops):
            lines += ["", f"and {len(found.drops) - len(shown)} more in gate.json"]
    if fine:
        lines += [*(["", "### Fine", ""] if others else []), *_table(HEAD, [cells(check) for check in fine])]
    return "\n".join([*lines, "", *(f"- {plain_cell(note)}" for note in notes(found))]) + "\n"


_DROPS = ("trial", "metric", "query", "question", "baseline", "today", "why")


def _worst(found: GateResult) -> list[Drop]:
    """The queries with the largest drops, for each check."""
    listed: dict[tuple[str, str], list[Drop]] = {}
    for drop in found.drops:
        listed.setdefault((drop.trial, drop.metric), []).append(drop)
    return [drop for drops in listed.values() for drop in drops[:LISTED]]


def _drop_cells(drop: Drop) -> tuple[str, ...]:
    question = drop.text if len(drop.text) <= 120 else f"{drop.text[:119]}…"
    return drop.trial, drop.metric, drop.query, question, f"{drop.before:.3f}", f"{drop.after:.3f}", drop.why


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(plain_cell(cell) for cell in row) + " |" for row in rows]
    return ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head), *lines]


def plain_cell(text: str) -> str:
    """Returns text escaped for a Markdown table: it starts no column, line or element."""
    return escaping.escape(" ".join(text.split()), quote=False).replace("|", "\\|").replace("`", "'")


def html(found: GateResult) -> str:
    """Returns the result as plain HTML, for notebooks that show no frames."""
    parts = [f"<p><b>{escaping.escape(title(found))}</b><br>{escaping.escape(against(found))}</p>"]
    parts += [f"<p>{escaping.escape(line)}</p>" for line in _changed(found)]
    for head, rows in (
        (HEAD, [cells(c) for c in by_urgency(found)]),
        (_DROPS, [_drop_cells(d) for d in _worst(found)]),
    ):
        if rows:
            top = "".join(f"<th>{name}</th>" for name in head)
            body = "".join(
                "<tr>" + "".join(f"<td>{escaping.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
            )
            parts.append(f"<table><tr>{top}</tr>{body}</table>")
    parts += [f"<p>{escaping.escape(note)}</p>" for note in notes(found)]
    return "".join([*parts, standalone(scheduled_runs(drawn(found)))])


def drawn(found: GateResult) -> list[RunSeries]:
    """Returns the scheduled runs of every check that has some."""
    every = [_series(check, found.history.get(check.trial, ())) for check in found.checks]
    return [series for series in every if series.when]


def _series(check: Check, past: Sequence[ScheduledRun]) -> RunSeries:
    """The history of a check, run by run; runs without it are left out."""
    runs = [(run.when, run.points[check.metric]) for run in past if check.metric in run.points]
    runs = [(when, point) for when, point in runs if not math.isnan(point.mean)]
    mean, low, high, baseline, verdict = ([getattr(point, side) for _, point in runs] for side in TrendPoint._fields)
    name, when = f"{check.trial}: {check.metric}", [when for when, _ in runs]
    return RunSeries(name, when, mean, low, high, baseline, verdict, check.margin)
