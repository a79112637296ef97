"""The result of the regression gate, and its forms: Markdown, HTML, JSON, JUnit XML and SVG."""

import html as escaping
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from xml.etree import ElementTree

from harness.core.characters import visible
from harness.core.json_text import plain
from harness.core.plurals import plural
from harness.core.secrecy import redact
from harness.evaluation.baseline import Baseline
from harness.evaluation.stats import FEW_CLUSTERS
from harness.running.launch_result import Launch
from harness.tracking import Links, ScheduledRun, TrendPoint
from reports.gate_passages import PassageRecord
from reports.page.figures import RunSeries, scheduled_runs, standalone
from reports.page.scheduled import changed_since, history_page

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
        return html(self)

    def __str__(self) -> str:
        return markdown(self)


_HEAD = ("trial", "metric", "baseline", "today", "difference", "bounds", "margin", "queries", "verdict")
_SAYS = {
    "fine": "fine, as good as the baseline within the margin",
    "worse": "worse than the baseline",
    "cannot tell": "cannot tell whether it is as good as the baseline",
}
FORMAT = 2
"""Version of the format of `gate.json`. Format 1 had the names of a tracker in `history`."""

LISTED = 10
"""Max queries listed for each check, with their passages; `gate.json` has more."""


def files(found: GateResult) -> dict[str, bytes]:
    """Returns `gate.md`, `gate.json`, `junit.xml`, `history.svg` and `history.html` by name."""
    made = {"gate.md": markdown(found), "gate.json": as_json(found), "junit.xml": junit(found)}
    made |= {"history.svg": standalone(scheduled_runs(_drawn(found))), "history.html": history(found)}
    # A reason may contain a lone surrogate, which UTF-8 cannot encode.
    return {name: text.encode("utf-8", "replace") for name, text in made.items()}


def tags(found: GateResult) -> dict[str, str]:
    """Returns what a tracker's table of scheduled runs shows: the queries that got worse, and what changed."""
    worse = len({(drop.trial, drop.query) for drop in found.drops})
    record = json.loads(as_json(found))
    changed = changed_since(record, found.earlier[-1] if found.earlier else None)
    return {"gate_worse": plural(worse, "query"), "gate_changed": "; ".join(changed)[:5000] or "nothing"}


def title(found: GateResult) -> str:
    """Returns the verdict in a line."""
    return f"{found.experiment}: {_SAYS[found.verdict]}"


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
    lines = [f"## {_cell(title(found))}", "", _cell(against(found)), ""]
    if found.changed:
        lines += [*map(_cell, _changed(found)), ""]
    fine = [check for check in found.checks if check.verdict == "fine"]
    others = sorted(
        (check for check in found.checks if check.verdict != "fine"), key=lambda check: check.verdict != "worse"
    )
    if others:
        lines += _table(_HEAD, [cells(check) for check in others])
    if found.drops:
        shown = _worst(found)
        lines += ["", "### Queries that got worse", "", *_table(_DROPS, [_drop_cells(drop) for drop in shown])]
        if len(shown) < len(found.drops):
            lines += ["", f"and {len(found.drops) - len(shown)} more in gate.json"]
    if fine:
        lines += [*(["", "### Fine", ""] if others else []), *_table(_HEAD, [cells(check) for check in fine])]
    return "\n".join([*lines, "", *(f"- {_cell(note)}" for note in notes(found))]) + "\n"


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
    lines = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head), *lines]


def _cell(text: str) -> str:
    """Text escaped for a Markdown table: it starts no column, line or element."""
    return escaping.escape(" ".join(text.split()), quote=False).replace("|", "\\|").replace("`", "'")


def html(found: GateResult) -> str:
    """Returns the result as HTML, for notebooks."""
    parts = [f"<p><b>{escaping.escape(title(found))}</b><br>{escaping.escape(against(found))}</p>"]
    parts += [f"<p>{escaping.escape(line)}</p>" for line in _changed(found)]
    for head, rows in (
        (_HEAD, [cells(c) for c in by_urgency(found)]),
        (_DROPS, [_drop_cells(d) for d in _worst(found)]),
    ):
        if rows:
            top = "".join(f"<th>{name}</th>" for name in head)
            body = "".join(
                "<tr>" + "".join(f"<td>{escaping.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
            )
            parts.append(f"<table><tr>{top}</tr>{body}</table>")
    parts += [f"<p>{escaping.escape(note)}</p>" for note in notes(found)]
    return "".join([*parts, standalone(scheduled_runs(_drawn(found)))])


def as_json(found: GateResult) -> str:
    """Returns the whole result as JSON; NaN and infinity become null."""
    baseline = found.baseline
    record = {
        "experiment": found.experiment,
        "verdict": found.verdict,
        "exit_code": found.exit_code,
        "alpha": found.alpha,
        "launch": found.launch.id,
        "when": found.when,
        "baseline": {name: getattr(baseline, name) for name in ("launch", "who", "when", "why", "measured")},
        "checks": [asdict(check) for check in found.checks],
        "drops": [asdict(drop) for drop in found.drops],
        "changed": list(found.changed),
        "notes": notes(found),
        "history": {name: list(past) for name, past in found.history.items()},
    }
    return json.dumps(plain({"format": FORMAT, **record}), indent=1, ensure_ascii=False, allow_nan=False)


def junit(found: GateResult) -> str:
    """Returns the result as JUnit XML: a test case per check; worse is a failure, cannot tell an error."""
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
    """Returns the files of a scheduled run that could not be compared, with the reason `why`."""
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
    """Text in which characters that XML 1.0 does not allow are replaced."""
    return "".join(char if _allowed(ord(char)) else "\ufffd" for char in text)


def _allowed(code: int) -> bool:
    return code in (9, 10, 13) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000


def history(found: GateResult) -> str:
    """Returns a page (HTML) of all scheduled runs: verdicts, what changed, and the queries that got worse."""
    records = [*found.earlier, json.loads(as_json(found))]
    return visible(redact(history_page(records, _drawn(found), notes(found)[0])))


def _drawn(found: GateResult) -> list[RunSeries]:
    """The scheduled runs of every check that has some."""
    drawn = [_series(check, found.history.get(check.trial, ())) for check in found.checks]
    return [series for series in drawn if series.when]


def _series(check: Check, past: Sequence[ScheduledRun]) -> RunSeries:
    """The history of a check, run by run; runs without it are left out."""
    runs = [(run.when, run.points[check.metric]) for run in past if check.metric in run.points]
    runs = [(when, point) for when, point in runs if not math.isnan(point.mean)]
    mean, low, high, baseline, verdict = ([getattr(point, side) for _, point in runs] for side in TrendPoint._fields)
    name, when = f"{check.trial}: {check.metric}", [when for when, _ in runs]
    return RunSeries(name, when, mean, low, high, baseline, verdict, check.margin)
