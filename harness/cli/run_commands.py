"""`harness plan` and `harness run`: estimate the cost of an experiment, and run it."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from harness.cli.arguments import (
    add_model_options,
    add_part_options,
    add_store_option,
    add_tracking_option,
    add_workers_option,
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


def add_plan_command(commands: CommandGroup) -> None:
    """Adds `harness plan`."""
    commands.add("plan", _plan, "show the trials of an experiment and what running them would cost", _plan_options)


def _plan_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", type=Path, help="the experiment file")
    add_part_options(parser)
    add_store_option(parser)
    add_model_options(parser, spends=False)


def add_run_command(commands: CommandGroup) -> None:
    """Adds `harness run`."""
    commands.add("run", _run, "run an experiment and log the results", _run_options)


def _run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", type=Path, help="the experiment file")
    add_workers_option(parser)
    parser.add_argument(
        "--on",
        metavar="WHERE",
        help="where tasks run: processes, dask://HOST:PORT, dask://local, ray://…, or package.module:callable that "
        "returns an Executor (default: HARNESS_ON, else processes)",
    )
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


def _plan(options: argparse.Namespace) -> int:
    from harness.experiment.yaml_file import read_experiment
    from harness.running.plan import plan

    experiment = whole_or_part(read_experiment(options.experiment), options)
    made = plan(experiment, store=options.store, models=models_of(options))
    width = max(len(trial.name) for trial in made.trials)
    stages = list(made.trials[0].stored)
    print(f"{'trial':<{width}}  " + "  ".join(f"{stage:<8}" for stage in stages))
    for trial in made.trials:
        print(f"{trial.name:<{width}}  " + "  ".join(f"{'stored' if trial.stored[s] else 'to do':<8}" for s in stages))
    print(f"\n{plural(len(made.trials), 'trial')}, {sum(all(t.stored.values()) for t in made.trials)} of them stored")
    for embedder, count in made.texts.items():
        usd = made.usd[embedder]
        price = "price unknown" if usd is None else f"${usd:.4f}" if usd else "no charge"
        tokens = plural(made.tokens[embedder], "token")
        print(f"to embed with {embedder}: {plural(count, 'distinct text')}, {tokens}, {price}")
    if not made.texts:
        print("nothing to embed")
    for line in made.calls:
        print(line)
    print(made.time)
    return OK


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
