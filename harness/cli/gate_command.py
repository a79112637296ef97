"""`harness gate`: compare today's results with the accepted baseline, or accept them as the new baseline."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.arguments import (
    add_model_options,
    add_store_option,
    add_tracking_option,
    add_workers_option,
    models_of,
)
from harness.cli.exit_codes import OK
from harness.cli.output import show_links, write_file
from harness.cli.parser import CommandGroup
from harness.core.errors import ConfigError, HarnessError

if TYPE_CHECKING:
    from harness.experiment.experiment import Experiment


def add_gate_command(commands: CommandGroup) -> None:
    """Adds `harness gate`."""
    summary = "compare today's results with the accepted baseline; exit code 1 if worse, 3 if it cannot tell"
    commands.add("gate", _gate, summary, _gate_options)


def _gate_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", type=Path, help="the experiment file")
    parser.add_argument("--accept", action="store_true", help="accept today's results as the new baseline")
    parser.add_argument("--why", default="", metavar="TEXT", help="the reason for accepting them")
    parser.add_argument("--who", metavar="NAME", help="who accepts them (default: the current user)")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder to write gate.md, gate.json, junit.xml, history.svg and history.html to",
    )
    parser.add_argument(
        "--fresh", action="store_true", help="use an empty store, so that remote models are called again"
    )
    add_workers_option(parser)
    add_store_option(parser)
    add_tracking_option(parser)
    add_model_options(parser)


def _gate(options: argparse.Namespace) -> int:
    from harness.experiment.yaml_file import read_experiment
    from reports.gate_files import refused

    if options.accept and options.out:
        raise ConfigError("gate: --out does not go with --accept, which compares nothing")
    try:
        return _accept_or_compare(options, read_experiment(options.experiment))
    except HarnessError as error:
        if options.out:
            # Files of an earlier run must not be mistaken for the result of this one.
            for name in ("history.svg", "history.html"):
                (options.out / name).unlink(missing_ok=True)
            for name, content in refused(options.experiment.stem, str(error)).items():
                write_file(options.out / name, content)
        raise


def _accept_or_compare(options: argparse.Namespace, experiment: "Experiment") -> int:
    from reports.gate_files import files
    from reports.gate_result import markdown
    from reports.gate_run import accept_launch, gate

    given: dict[str, Any] = {
        "workers": options.workers,
        "store": options.store,
        "tracking": options.tracking,
        "models": models_of(options),
        "notify": lambda line: print(line, file=sys.stderr, flush=True),
    }
    if options.accept:
        baseline = accept_launch(experiment, why=options.why, who=options.who, **given)
        print(f"{experiment.name}: launch {baseline.launch} accepted by {baseline.who}: {baseline.why}")
        for trial in baseline.trials:
            lines = (f"{name} {trial.mean(name):.3f}" for name in (*experiment.metrics, *experiment.judged))
            print(f"  {trial.name}: {', '.join(lines)}")
        return OK
    if options.why or options.who:
        raise ConfigError("gate: --why and --who require --accept")
    found = gate(experiment, fresh=options.fresh, **given)
    if options.out:
        for name, content in files(found).items():
            write_file(options.out / name, content)
    print(markdown(found))
    show_links(found.logged)
    return found.exit_code
