"""`harness run`: run an experiment and log the results."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from harness.cli.arguments import (
    add_engine_options,
    add_model_options,
    add_part_options,
    add_store_option,
    add_tracking_option,
    destinations,
    models_of,
    params_of,
    whole_or_part,
)
from harness.cli.exit_codes import CANNOT_TELL, OK
from harness.cli.output import show, show_links, width
from harness.cli.parser import CommandGroup
from harness.core.errors import ConfigError
from harness.core.plurals import plural


def add_run_command(commands: CommandGroup) -> None:
    """Adds `harness run`."""
    commands.add("run", _run, "run an experiment and log the results", _run_options)


def _run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", type=Path, help="the experiment file")
    add_engine_options(parser)
    parser.add_argument(
        "--final",
        action="store_true",
        help="score the chosen trial and the baseline on the locked query set; the access is recorded",
    )
    parser.add_argument(
        "--choose", action="append", default=[], metavar="PARAM=VALUE", help="params of the trial for --final"
    )
    parser.add_argument(
        "--no-mlflow", action="store_true", help="do not log to MLflow, only to --tracking jsonl:FOLDER"
    )
    add_part_options(parser)
    parser.add_argument(
        "--tag", action="append", default=[], metavar="NAME=VALUE", help="a tag for the launch and its trials"
    )
    add_store_option(parser)
    add_tracking_option(parser)
    add_model_options(parser)


def _run(options: argparse.Namespace) -> int:
    from harness.experiment.tags import checked_tags
    from harness.experiment.yaml_file import read_experiment
    from reports import ComparedReport, columns, compare
    from reports.answer import answer
    from reports.comparison import table
    from reports.final import final_scores, lines
    from reports.judge_notes import judge_table
    from reports.logged_run import run

    if options.choose and not options.final:
        raise ConfigError("run: --choose requires --final")
    report = ComparedReport()
    experiment = whole_or_part(read_experiment(options.experiment), options)
    tags = checked_tags({**experiment.tags, **params_of("--tag", options.tag)}, "--tag")
    launch = run(
        replace(experiment, tags=tags),
        workers=options.workers,
        on=options.on,
        store=options.store,
        tracking=destinations(options),
        final=options.final,
        choose=params_of("--choose", options.choose),
        models=models_of(options),
        report=report,
        notify=lambda line: print(line, flush=True),
    )
    comparison = report.comparison or compare(launch)
    show(table(comparison, width()))
    print(answer(comparison))
    final = final_scores(launch)
    for line in lines(final) if final else ():
        print(line)
    if launch.experiment.compare.show:
        show(columns.table(launch, launch.experiment.compare.show))
    if launch.results[0].judged:
        show(judge_table(launch))
    done = ", ".join(f"{count} {stage}" for stage, count in launch.work.items()) or "nothing, all results were stored"
    print(f"\n{plural(len(launch.results), 'trial')} in {launch.seconds:.0f} s; computed: {done}")
    show_links(launch.logged)
    if launch.withheld:
        print(f"harness: withheld: {', '.join(launch.withheld)}; too many judgments are missing", file=sys.stderr)
        return CANNOT_TELL
    return OK
