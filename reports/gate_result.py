"""What the regression gate found: its records, and how they read as Markdown, HTML, JSON, JUnit XML and a picture."""

import html as escaping
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal
from xml.etree import ElementTree

from harness.evaluation.baseline import Baseline
from harness.evaluation.stats import FEW_CLUSTERS
from harness.running.launch_result import Launch
from harness.tracking import ScheduledRun
from harness.tracking.mlflow_fields import metric_key
from reports.page.drawing import standalone
from reports.page.figures import RunSeries, scheduled_runs
from reports.plain import plain

if TYPE_CHECKING:
    from pandas import DataFrame


Verdict = Literal["fine", "worse", "cannot tell"]


CODES: Mapping[Verdict, float] = {"fine": 0, "worse": 1, "cannot tell": 3}
"""Exit codes, and the verdict in a trial's trend."""


@dataclass(frozen=True)
class Check:
    """One metric of one trial: its mean as accepted and today, and the paired difference with its bounds.

    Bounds hold for all checks at once, each side at the gate's alpha; they are NaN where there are too few clusters for
    any. `complete` counts the queries with a value today, of `queries`.
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
    """A query that lost on a metric, and why: what became of its evidence then and now."""

    trial: str
    metric: str
    query: str
    text: str
    before: float
    after: float
    why: str


@dataclass(frozen=True)
class GateResult:
    """What the gate says of a launch. `verdict` is the worst of all checks; `exit_code` 0, 1 or 3 accordingly."""

    experiment: str
    launch: Launch
    baseline: Baseline
    alpha: float
    checks: Sequence[Check]
    drops: Sequence[Drop]
    changed: Sequence[str]
    """Settings that are not as they were accepted, a line each."""
    history: Mapping[str, Sequence[ScheduledRun]]
    link: str = ""
    """The page of the MLflow UI that shows the scheduled runs."""

    @property
    def verdict(self) -> Verdict:
        words = {check.verdict for check in self.checks}
        return "worse" if "worse" in words else "cannot tell" if "cannot tell" in words else "fine"

    @property
    def exit_code(self) -> int:
        return int(CODES[self.verdict])

    def frame(self) -> "DataFrame":
        """A row per check, a column per field."""
        import pandas as pd

        return pd.DataFrame(self.checks)

    def _repr_html_(self) -> str:
        return html(self)

    def __str__(self) -> str:
        return markdown(self)


_HEAD = ("trial", "metric", "baseline", "today", "difference", "bounds", "margin", "queries", "verdict")
_SAYS = {
    "fine": "fine, as good as accepted within the margin",
    "worse": "worse than accepted",
    "cannot tell": "cannot tell whether it is as good as accepted",
}
FORMAT = 1
"""Of `gate.json`."""

_LISTED = 10
"""Queries that are listed for each check; `gate.json` has more."""


def files(found: GateResult) -> dict[str, bytes]:
    """`gate.md`, `gate.json`, `junit.xml`, and `history.svg`."""
    made = {"gate.md": markdown(found), "gate.json": as_json(found), "junit.xml": junit(found)}
    # Half a surrogate pair, which a reason may hold, has no UTF-8.
    return {name: text.encode("utf-8", "replace") for name, text in {**made, "history.svg": history(found)}.items()}


def title(found: GateResult) -> str:
    """The verdict in a line."""
    return f"{found.experiment}: {_SAYS[found.verdict]}"


def against(found: GateResult) -> str:
    """What today was held against."""
    baseline = found.baseline
    return f"against what {baseline.who} accepted on {baseline.when}: {baseline.why}"


def cells(check: Check) -> tuple[str, ...]:
    """One check, in the order of the table's columns."""
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
    """What the table does not say by itself."""
    sides = f"bounds hold for all {len(found.checks)} checks at once" if len(found.checks) > 1 else "bounds"
    lines = [f"{sides}, each side at {1 - found.alpha:.0%}; fine: above minus the margin; worse: below 0, and not fine"]
    clusters = len(set(found.launch.results[0].clusters))
    if found.launch.experiment.compare.clusters == "documents" and clusters < FEW_CLUSTERS:
        lines.append(f"{clusters} clusters of queries only: the bounds are rough")
    if any(math.isnan(check.low) for check in found.checks):
        lines.append(
            "there are too few documents for bounds; `compare: {clusters: queries}` asks about these documents"
        )
    return [*lines, *found.launch.warnings]


def _changed(found: GateResult) -> list[str]:
    """Settings that changed since: the first thing to look at."""
    return [f"- changed since: {line}" for line in found.changed]


def markdown(found: GateResult) -> str:
    """The gate for a CI summary."""
    lines = [f"## {_cell(title(found))}", "", _cell(against(found)), ""]
    if found.changed:
        lines += [*map(_cell, _changed(found)), ""]
    lines += _table(_HEAD, [cells(check) for check in found.checks])
    if found.drops:
        shown = _worst(found)
        lines += ["", "### Queries that got worse", "", *_table(_DROPS, [_drop_cells(drop) for drop in shown])]
        if len(shown) < len(found.drops):
            lines += ["", f"and {len(found.drops) - len(shown)} more in gate.json"]
    return "\n".join([*lines, "", *(f"- {_cell(note)}" for note in notes(found))]) + "\n"


_DROPS = ("trial", "metric", "query", "question", "baseline", "today", "why")


def _worst(found: GateResult) -> list[Drop]:
    """The queries that lost most, of each check."""
    listed: dict[tuple[str, str], list[Drop]] = {}
    for drop in found.drops:
        listed.setdefault((drop.trial, drop.metric), []).append(drop)
    return [drop for drops in listed.values() for drop in drops[:_LISTED]]


def _drop_cells(drop: Drop) -> tuple[str, ...]:
    question = drop.text if len(drop.text) <= 120 else f"{drop.text[:119]}…"
    return drop.trial, drop.metric, drop.query, question, f"{drop.before:.3f}", f"{drop.after:.3f}", drop.why


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head), *lines]


def _cell(text: str) -> str:
    """Text that Markdown takes for text: no column, line or element begins in it."""
    return escaping.escape(" ".join(text.split()), quote=False).replace("|", "\\|").replace("`", "'")


def html(found: GateResult) -> str:
    """The gate as HTML, for notebooks."""
    parts = [f"<p><b>{escaping.escape(title(found))}</b><br>{escaping.escape(against(found))}</p>"]
    for head, rows in ((_HEAD, [cells(c) for c in found.checks]), (_DROPS, [_drop_cells(d) for d in _worst(found)])):
        if rows:
            top = "".join(f"<th>{name}</th>" for name in head)
            body = "".join(
                "<tr>" + "".join(f"<td>{escaping.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
            )
            parts.append(f"<table><tr>{top}</tr>{body}</table>")
    parts += [f"<p>{escaping.escape(note)}</p>" for note in (*_changed(found), *notes(found))]
    return "".join([*parts, history(found)])


def as_json(found: GateResult) -> str:
    """Everything as JSON; what is not a number is null."""
    baseline = found.baseline
    record = {
        "experiment": found.experiment,
        "verdict": found.verdict,
        "exit_code": found.exit_code,
        "alpha": found.alpha,
        "launch": found.launch.id,
        "baseline": {name: getattr(baseline, name) for name in ("launch", "who", "when", "why", "measured")},
        "checks": [asdict(check) for check in found.checks],
        "drops": [asdict(drop) for drop in found.drops],
        "changed": list(found.changed),
        "notes": notes(found),
        "history": {name: [run._asdict() for run in past] for name, past in found.history.items()},
    }
    return json.dumps(plain({"format": FORMAT, **record}), indent=1, ensure_ascii=False, allow_nan=False)


def junit(found: GateResult) -> str:
    """The gate as JUnit XML: a test case per check; worse is a failure, cannot tell an error."""
    count = {word: sum(check.verdict == word for check in found.checks) for word in _SAYS}
    numbers = {"tests": len(found.checks), "failures": count["worse"], "errors": count["cannot tell"]}
    totals = {name: str(number) for name, number in numbers.items()}
    suites = ElementTree.Element("testsuites", totals)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": _xml(found.experiment), **totals})
    for check in found.checks:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": _xml(found.experiment), "name": _xml(f"{check.trial}: {check.metric}")}
        )
        text = dict(zip(_HEAD, cells(check), strict=True))
        line = f"baseline {text['baseline']}, today {text['today']}, difference {text['difference']} ({text['bounds']})"
        if check.verdict == "fine":
            ElementTree.SubElement(case, "system-out").text = line
            continue
        kind = "failure" if check.verdict == "worse" else "error"
        worse = ElementTree.SubElement(case, kind, {"type": check.verdict, "message": f"{check.verdict}: {line}"})
        drops = [drop for drop in found.drops if (drop.trial, drop.metric) == (check.trial, check.metric)]
        worse.text = _xml("\n".join(f"{d.query}: {d.before:.3f} → {d.after:.3f}: {d.why}: {d.text}" for d in drops))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def refused(experiment: str, why: str) -> dict[str, bytes]:
    """The files of a scheduled run on which nothing could be compared, and why."""
    suites = ElementTree.Element("testsuites", {"tests": "1", "failures": "0", "errors": "1"})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": _xml(experiment), **suites.attrib})
    case = ElementTree.SubElement(suite, "testcase", {"classname": _xml(experiment), "name": "gate"})
    ElementTree.SubElement(case, "error", {"type": "not compared", "message": _xml(why)})
    ElementTree.indent(suites)
    record = {"experiment": experiment, "verdict": "not compared", "exit_code": 2, "why": why}
    return {
        "gate.md": f"## {experiment}: not compared\n\n{_cell(why)}\n".encode(),
        "gate.json": json.dumps({"format": FORMAT, **record}, indent=1, ensure_ascii=False).encode(),
        "junit.xml": (ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n").encode(),
    }


def _xml(text: str) -> str:
    """Text without the characters that XML 1.0 has no way to write."""
    return "".join(sign if _writable(ord(sign)) else "\ufffd" for sign in text)


def _writable(code: int) -> bool:
    return code in (9, 10, 13) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000


def history(found: GateResult) -> str:
    """The scheduled runs of every check as a picture (SVG)."""
    drawn = [_series(check, found.history.get(check.trial, ())) for check in found.checks]
    return standalone(scheduled_runs([series for series in drawn if series.when]))


def _series(check: Check, past: Sequence[ScheduledRun]) -> RunSeries:
    """The history of a check, run by run; runs without it are left out."""
    keys = trend_keys(check.metric)
    runs = [run for run in past if keys[0] in run.values]
    mean, low, high, baseline, verdict = ([run.values.get(key, math.nan) for run in runs] for key in keys)
    name, when = f"{check.trial}: {check.metric}", [run.when for run in runs]
    return RunSeries(name, when, mean, low, high, baseline, verdict, check.margin)


def trend_keys(metric: str) -> tuple[str, str, str, str, str]:
    """The MLflow keys of a metric in a trial's trend: mean, its interval, the baseline's mean, the verdict's code."""
    key = metric_key(metric)
    return key, f"ci/{key}_lo", f"ci/{key}_hi", f"baseline/{key}", f"gate/{key}"
