"""`harness data check`: prints findings with a table of their kinds, or as JSON; can write a repaired copy."""

import argparse
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.arguments import add_store_option
from harness.cli.exit_codes import INVALID, OK
from harness.cli.output import show
from harness.cli.parser import number
from harness.core.errors import ConfigError
from harness.core.plurals import plural

if TYPE_CHECKING:
    from harness.data.checks import Finding
    from harness.experiment.experiment import Experiment

_SHOWN = 5
"""Findings of one kind that are printed without `--all`."""


def add_check_options(made: argparse.ArgumentParser) -> None:
    """Add the options of `harness data check`."""
    made.add_argument("dataset", help="a data set folder, a name under datasets/, or an experiment file")
    made.add_argument("--json", action="store_true", help="print JSON lines, one per finding")
    made.add_argument(
        "--all", action="store_true", help=f"print every finding, not only the first {_SHOWN} of each kind"
    )
    made.add_argument("--strict", action="store_true", help="exit code 1 for warnings too")
    made.add_argument("--effect", type=number, metavar="D", help="the difference of means to detect (default 0.03)")
    made.add_argument("--fix", type=Path, metavar="DIR", help="write a copy with all unambiguous repairs, and a diff")
    add_store_option(made)


def check(options: argparse.Namespace) -> int:
    """Print the findings; exit code 1 if there is an error, with `--strict` also if there is a warning."""
    from harness.cli.arguments import dataset_folder

    if options.effect is not None and not 0 < options.effect <= 1:
        raise ConfigError(f"--effect {options.effect:g}: expected a difference above 0 and at most 1")
    path, experiment = Path(options.dataset), None
    if path.suffix in (".yaml", ".yml"):
        from harness.data.manifest import find_dataset
        from harness.experiment.yaml_file import read_experiment

        experiment = read_experiment(path)
        root = find_dataset(experiment.base.data, experiment.base_dir)
    else:
        root = dataset_folder(options.dataset)
    if options.fix:
        _fix(root, options.fix, notify=not options.json)
        root = options.fix
    found = _findings(root, experiment, options)
    levels = Counter(finding.level for finding in found)
    if options.json:
        for finding in found:
            print(json.dumps(finding.as_json(), ensure_ascii=False))
    else:
        _print(found, every=options.all)
        print(f"{plural(levels['error'], 'error')}, {plural(levels['warning'], 'warning')}")
    return INVALID if levels["error"] or (options.strict and found) else OK


def _findings(root: Path, experiment: "Experiment | None", options: argparse.Namespace) -> list["Finding"]:
    """The findings on a data set folder; for an experiment, also those on its chunkings."""
    from harness.data.checks import check_dataset
    from harness.data.checks.sizes import EFFECT

    compared = experiment.compare if experiment else None
    effect = options.effect or (compared and (compared.effect or compared.margin)) or EFFECT
    found = list(check_dataset(root, effect=effect))
    if compared and compared.clusters == "queries":
        # Results are meant to generalize to other queries on these documents, not to other documents.
        found = [finding for finding in found if finding.code != "few-clusters"]
    # The experiment names the original, not the repaired copy.
    if experiment and not options.fix and not any(finding.level == "error" for finding in found):
        from harness.running.chunking_checks import suitability

        found += suitability(experiment, options.store)
    return found


def _fix(root: Path, target: Path, *, notify: bool) -> None:
    from harness.data.checks import fix_dataset
    from harness.data.checks.repair import DIFF

    fixed = fix_dataset(root, target)
    if notify:
        for what, count in fixed.counts.items():
            print(f"{count:,} {what}")
        message = f"{target / DIFF} lists the changes" if fixed.counts else "nothing to repair"
        print(f"{target}: repaired copy; {message}. Remaining findings:")


def _print(found: Sequence["Finding"], *, every: bool) -> None:
    for code, findings in _by_code(found).items():
        for finding in findings if every else findings[:_SHOWN]:
            print(f"{finding.level}: {_short(finding.where)}: {finding.what} [{code}]")
        if not every and len(findings) > _SHOWN:
            print(f"  … and {len(findings) - _SHOWN:,} more [{code}]; --all prints them")
    if found:
        _table(found)


def _short(where: str) -> str:
    """The place, relative to the working folder if it is inside."""
    return where.removeprefix(f"{Path.cwd()}{os.sep}")


def _by_code(found: Iterable["Finding"]) -> dict[str, list["Finding"]]:
    from harness.data.checks import CODES

    made: dict[str, list[Finding]] = {}
    for finding in found:
        made.setdefault(finding.code, []).append(finding)
    return {code: made[code] for code in CODES if code in made}


def _table(found: Sequence["Finding"]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from harness.data.checks import CODES

    table = Table(box=SIMPLE_HEAD)
    table.add_column("finding", no_wrap=True)
    table.add_column("level", no_wrap=True)
    table.add_column("count", justify="right", no_wrap=True)
    table.add_column("what it means")
    for code, findings in _by_code(found).items():
        table.add_row(code, findings[0].level, f"{len(findings):,}", CODES[code])
    show(table)
