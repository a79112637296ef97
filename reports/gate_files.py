"""The files of a scheduled run: `gate.json`, JUnit XML, the history as a page and as a chart, and Markdown."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

from harness.core.characters import visible
from harness.core.json_text import plain
from harness.core.plurals import plural
from harness.core.secrecy import redact
from reports.appearance import marked
from reports.gate_result import HEAD, SAYS, GateResult, cells, drawn, markdown, notes, plain_cell
from reports.page.figures import scheduled_runs, standalone
from reports.page.scheduled import changed_since, history_page

FORMAT = 2
"""Version of the format of `gate.json`. Format 1 had the names of a tracker in `history`."""


def files(found: GateResult) -> dict[str, bytes]:
    """Returns `gate.md`, `gate.json`, `junit.xml`, `history.svg` and `history.html` by name."""
    made = {"gate.md": markdown(found), "gate.json": as_json(found), "junit.xml": junit(found)}
    made |= {"history.svg": standalone(scheduled_runs(drawn(found))), "history.html": history(found)}
    # A reason may contain a lone surrogate, which UTF-8 cannot encode.
    return {name: text.encode("utf-8", "replace") for name, text in made.items()}


def tags(found: GateResult) -> dict[str, str]:
    """Returns what a tracker's table of scheduled runs shows: the queries that got worse, and what changed."""
    changed = changed_since(_record(found), found.earlier[-1] if found.earlier else None)
    return {
        "gate": marked(found.verdict),
        "gate_worse": plural(found.queries_worse, "query"),
        "gate_changed": "; ".join(changed)[:5000] or "nothing",
    }


def as_json(found: GateResult) -> str:
    """Returns the whole result as JSON; NaN and infinity become null."""
    return json.dumps(_record(found), indent=1, ensure_ascii=False, allow_nan=False)


def _record(found: GateResult) -> dict[str, Any]:
    """The content of `gate.json`."""
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
        "queries_worse": found.queries_worse,
        "drops": [asdict(drop) for drop in found.drops],
        "changed": list(found.changed),
        "notes": notes(found),
        "history": {name: list(past) for name, past in found.history.items()},
    }
    made: dict[str, Any] = plain({"format": FORMAT, **record})
    return made


_WITH_PASSAGES = 20
"""Earlier scheduled runs whose passages are on the page of the history: a run has up to 200 kB of them."""


def _without_passages(record: Mapping[str, Any]) -> dict[str, Any]:
    drops = [{name: value for name, value in drop.items() if "passages" not in name} for drop in record["drops"]]
    return {**record, "drops": drops}


def history(found: GateResult) -> str:
    """Returns a page (HTML) of all scheduled runs: verdicts, what changed, and the queries that got worse."""
    cut = len(found.earlier) - _WITH_PASSAGES
    earlier = [record if at >= cut else _without_passages(record) for at, record in enumerate(found.earlier)]
    records = [*earlier, _record(found)]
    return visible(redact(history_page(records, drawn(found), notes(found)[0])))


def junit(found: GateResult) -> str:
    """Returns the result as JUnit XML: a test case per check; worse is a failure, cannot tell an error."""
    count = {word: sum(check.verdict == word for check in found.checks) for word in SAYS}
    numbers = {"tests": len(found.checks), "failures": count["worse"], "errors": count["cannot tell"]}
    totals = {name: str(number) for name, number in numbers.items()}
    suites = ElementTree.Element("testsuites", totals)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": _xml(found.experiment), **totals})
    for check in found.checks:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": _xml(found.experiment), "name": _xml(f"{check.trial}: {check.metric}")}
        )
        text = dict(zip(HEAD, cells(check), strict=True))
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
        "gate.md": f"## {experiment}: not compared\n\n{plain_cell(why)}\n".encode(),
        "gate.json": json.dumps({"format": FORMAT, **record}, indent=1, ensure_ascii=False).encode(),
        "junit.xml": (ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n").encode(),
    }


def _xml(text: str) -> str:
    """Text in which characters that XML 1.0 does not allow are replaced."""
    return "".join(char if _allowed(ord(char)) else "\ufffd" for char in text)


def _allowed(code: int) -> bool:
    return code in (9, 10, 13) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000
