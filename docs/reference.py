"""Writes the reference pages of the site from the docstrings: a page per component and metric, and all commands."""

import argparse
import inspect
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.cli.main import command_line
from harness.cli.parser import CommandParser
from harness.components.selectors.presets import PRESETS
from harness.evaluation.metrics import MEASURES
from harness.experiment.catalog import BUILTINS, describe

_FOLDER = Path(__file__).parent / "reference"
_CUTOFFS = {
    "optional": "`{name}`, `{name}@5` (a rank) or `{name}@1000t` (a token budget)",
    "none": "`{name}`",
    "level": "`{name}@0.1` (a recall level)",
}
_EVIDENCE = {
    "any": "any evidence",
    "spans": "evidence that is given as spans",
    "documents": "evidence that is given as documents",
}


def main() -> None:
    """Write all pages; those of parts that are gone are removed."""
    shutil.rmtree(_FOLDER, ignore_errors=True)
    _write("components", _components())
    _write("metrics", _metrics())
    _write("commands", _commands())


def _write(name: str, lines: Iterator[str]) -> None:
    path = _FOLDER / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _contents(pages: list[str]) -> Iterator[str]:
    yield from ("```{toctree}", ":hidden:", "", *pages, "```", "")


def _components() -> Iterator[str]:
    """The list of all components; writes their pages."""
    pages = [f"{role}/{name}" for role in BUILTINS for name in BUILTINS[role]]
    yield from (
        "# All components",
        "",
        "The built-in components of each role. `harness list NAME` shows the same in a terminal.",
        "",
    )
    yield from _contents(pages)
    for role, known in BUILTINS.items():
        if known:
            yield from (f"## {role.capitalize()}s", "", "| name | |", "| --- | --- |")
            for name in known:
                yield f"| [`{name}`]({role}/{name}.md) | {_cell(describe(role, name).summary)} |"
                _write(f"{role}/{name}", _component(role, name))
            yield ""
    steps = ", ".join(f"`{name}`" for name in PRESETS)
    yield f"{steps} are presets: names for lists of selector steps."


def _component(role: str, name: str) -> Iterator[str]:
    known = describe(role, name)
    yield from (f"# {name}", "", f"*A {role}.* {known.summary}", "")
    if known.details:
        yield from (inspect.cleandoc(known.details), "")
    if not known.settings:
        yield "It has no settings."
        return
    yield from ("| setting | default | |", "| --- | --- | --- |")
    for setting in known.settings:
        effect = "affects only speed or cost" if setting.runtime else ""
        yield f"| `{setting.name}` | `{_cell(setting.default)}` | {effect} |"


def _metrics() -> Iterator[str]:
    """The list of all metrics; writes their pages."""
    yield from ("# All metrics", "", "`harness list metrics` shows the same in a terminal.", "")
    yield from _contents([f"metric/{name}" for name in MEASURES])
    yield from ("| name | |", "| --- | --- |")
    for name, measure in MEASURES.items():
        yield f"| [`{name}`](metric/{name}.md) | {_cell(measure.help)} |"
        _write(f"metric/{name}", _metric(name, measure))


def _metric(name: str, measure: Any) -> Iterator[str]:
    yield from (f"# {name}", "", inspect.getdoc(measure.function) or "", "")
    yield from ("| | |", "| --- | --- |")
    yield f"| write | {_CUTOFFS[measure.cutoff].format(name=name)} |"
    yield f"| defined for | {_EVIDENCE[measure.evidence]} |"
    if measure.oracle != "no":
        yield "| looks at | all chunks of the corpus, not the selection |"
    if measure.geometric:
        yield "| mean over queries | geometric |"


def _commands() -> Iterator[str]:
    """All commands with their options."""
    yield from ("# All commands", "", "What `harness COMMAND --help` prints.", "")
    for parser in _parsers(command_line()):
        yield from (f"## {parser.prog}", "", "```text", parser.format_help().rstrip(), "```", "")


def _parsers(parser: CommandParser) -> Iterator[CommandParser]:
    parser.complete()
    parser.formatter_class = _Wide
    yield parser
    for command in parser.group.parsers() if parser.group else ():
        yield from _parsers(command)


class _Wide(argparse.HelpFormatter):
    """Help of the same width on every machine."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=100)


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


if __name__ == "__main__":
    main()
