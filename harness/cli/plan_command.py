"""`harness plan`: the trials of an experiment, and what running them would cost."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.arguments import (
    add_engine_options,
    add_model_options,
    add_part_options,
    add_store_option,
    models_of,
    whole_or_part,
)
from harness.cli.exit_codes import OK
from harness.cli.output import byte_size
from harness.cli.parser import CommandGroup, number
from harness.core.errors import ConfigError
from harness.core.plurals import plural

if TYPE_CHECKING:
    from harness.running.planning.cluster_estimate import ClusterEstimate
    from harness.running.planning.plan import Plan


def add_plan_command(commands: CommandGroup) -> None:
    """Adds `harness plan`."""
    commands.add("plan", _plan, "show the trials of an experiment and what running them would cost", _plan_options)


def _plan_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", type=Path, help="the experiment file")
    parser.add_argument(
        "--time", action="store_true", help="time the stages and the local models on a sample of the data"
    )
    add_engine_options(parser)
    parser.add_argument(
        "--usd-per-hour", type=number, metavar="USD", help="what a worker costs per hour, to show what all would cost"
    )
    add_part_options(parser)
    add_store_option(parser)
    add_model_options(parser, spends=False)


def _plan(options: argparse.Namespace) -> int:
    from harness.experiment.yaml_file import read_experiment
    from harness.running.engines import is_cluster
    from harness.running.planning.plan import plan

    if options.usd_per_hour is not None and not 0 <= options.usd_per_hour < 1e6:
        raise ConfigError(f"--usd-per-hour {options.usd_per_hour:g}: expected dollars, such as 0.40")
    experiment = whole_or_part(read_experiment(options.experiment), options)
    made = plan(
        experiment,
        store=options.store,
        models=models_of(options),
        workers=options.workers,
        on=options.on,
        time=options.time,
    )
    for line in _lines(made):
        print(line)
    asked = options.time or options.workers > 1 or options.usd_per_hour is not None or is_cluster(options.on)
    if made.cluster and asked:
        for line in _cluster_lines(made.cluster, options.usd_per_hour):
            print(line)
    return OK


def _lines(made: "Plan") -> Iterator[str]:
    """What is stored and what is not, the texts to embed, the calls to models, and the time on one worker."""
    width = max(len(trial.name) for trial in made.trials)
    stages = list(made.trials[0].stored)
    yield f"{'trial':<{width}}  " + "  ".join(f"{stage:<8}" for stage in stages)
    for trial in made.trials:
        yield f"{trial.name:<{width}}  " + "  ".join(f"{'stored' if trial.stored[s] else 'to do':<8}" for s in stages)
    yield f"\n{plural(len(made.trials), 'trial')}, {sum(all(t.stored.values()) for t in made.trials)} of them stored"
    for embedder, count in made.texts.items():
        usd = made.usd[embedder]
        price = "price unknown" if usd is None else f"${usd:.4f}" if usd else "no charge"
        tokens = plural(made.tokens[embedder], "token")
        yield f"to embed with {embedder}: {plural(count, 'distinct text')}, {tokens}, {price}"
    if not made.texts:
        yield "nothing to embed"
    yield from made.calls
    yield str(made.time)


def _cluster_lines(made: "ClusterEstimate", usd_per_hour: float | None) -> Iterator[str]:
    """The work by kind, the wall time and the cost on all workers, and the bytes that move."""
    from harness.core.progress import duration
    from harness.llm.prices import dollars

    if not made.time.parts:
        return
    width = max(len(part.name) for part in made.time.parts) + len(" (at most)")
    yield f"\n{'work':<{width}}  {'tasks':>7}  {'CPU hours':>9}  {'GPU hours':>9}  {'written':>9}"
    for part in made.time.parts:
        # A stage without tasks is made in the tasks of the stage that needs it.
        tasks = f"{part.tasks:,}" if part.tasks else ""
        hours = "" if not tasks else "?" if part.seconds is None else _hours(part.seconds)
        on_gpu = made.accelerated and not part.stage
        cpu, gpu = ("", hours) if on_gpu else (hours, "")
        name = f"{part.name} (at most)" if part.at_most else part.name
        written = "?" if part.written is None else byte_size(part.written)
        yield f"{name:<{width}}  {tasks:>7}  {cpu:>9}  {gpu:>9}  {written:>9}"
    if made.wall is None:
        hint = "; --time times a sample" if any(part.seconds is None for part in made.time.parts) else ""
        missing = " and ".join(made.time.unknown)
        yield f"on {plural(made.workers, 'worker')}: not known, as {missing} were not timed{hint}"
    else:
        usd = ""
        if usd_per_hour is not None:
            usd = f", {dollars(made.usd(usd_per_hour))} at ${usd_per_hour:g} per worker and hour"
        yield f"on {plural(made.workers, 'worker')}: about {duration(made.wall)} of computing{usd}"
    if made.traffic is None:
        yield "bytes that move: not known yet; --time measures a sample"
    else:
        data, texts, written, read = map(byte_size, made.traffic)
        yield f"bytes that move: {data} of data to each worker, {texts} of texts to embed in tasks,"
        yield f"  {written} written to the store, at most {read} read from it"


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:.3f}" if hours >= 0.0005 or not hours else "<0.001"
