"""`harness compare`, `report` and `bins`: analyse the results of a launch."""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.arguments import add_part_options, add_store_option, experiment_of, launch_of, params_of
from harness.cli.exit_codes import CANNOT_TELL, INVALID, OK
from harness.cli.output import show, width, write_file
from harness.cli.parser import CommandGroup, number
from harness.core.errors import ConfigError
from harness.experiment.settings import CLUSTERS

if TYPE_CHECKING:
    from harness.running.launch_result import Launch


def add_compare_command(commands: CommandGroup) -> None:
    """Adds `harness compare`."""
    commands.add("compare", _compare, "compare the trials of an experiment on one metric", _compare_options)


def _compare_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", help="the experiment file, or the name of an experiment that has run")
    parser.add_argument("--metric", help="the metric (default: the experiment's compare.on)")
    parser.add_argument(
        "--baseline", action="append", default=[], metavar="PARAM=VALUE", help="params of the baseline trial"
    )
    parser.add_argument("--margin", type=number, metavar="D", help="the smallest difference that matters in practice")
    parser.add_argument("--effect", type=number, metavar="D", help="the difference to detect, for the column `needed`")
    parser.add_argument(
        "--clusters", choices=CLUSTERS, help="unit of resampling: documents, or queries on the same documents"
    )
    parser.add_argument("--final", action="store_true", help="use the newest launch on the locked query set")
    add_part_options(parser)
    parser.add_argument(
        "--published", action="store_true", help="compare with published figures; exit code 1 if any differs"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, with all metrics and facts of each trial")
    form.add_argument(
        "--csv", action="store_true", help="print CSV, with a row per trial and a column per metric and fact"
    )
    parser.add_argument(
        "--show",
        metavar="NAMES",
        help="further metrics and facts to show, separated by commas; JSON and CSV then have no others",
    )
    add_store_option(parser)


def add_report_command(commands: CommandGroup) -> None:
    """Adds `harness report`."""
    commands.add("report", _report, "write the report on an experiment: one self-contained HTML file", _report_options)


def _report_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", help="the experiment file, or the name of an experiment that has run")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file to write (default NAME.html)")
    parser.add_argument("--metric", help="the metric (default: the experiment's compare.on)")
    parser.add_argument("--final", action="store_true", help="use the newest launch on the locked query set")
    add_part_options(parser)
    parser.add_argument(
        "--explore", action="append", default=[], metavar="TRIAL", help="a trial to include in the query explorer"
    )
    add_store_option(parser)


def add_bins_command(commands: CommandGroup) -> None:
    """Adds `harness bins`."""
    commands.add("bins", _bins, "show the fraction of relevant hits in each bin of cosine scores", _bins_options)


def _bins_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", help="the experiment file; its trials must have run")
    parser.add_argument("--edges", metavar="NUMBERS", help="the edges of the bins (default 0.9,0.8,…,0.3)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also write a chart (SVG)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_store_option(parser)


def _compare(options: argparse.Namespace) -> int:
    from reports import columns, compare
    from reports.comparison import as_csv, as_json, table

    launch = launch_of(options)
    if options.published:
        return _published(options, launch)
    comparison = compare(
        launch,
        on=options.metric,
        baseline=params_of("--baseline", options.baseline),
        margin=options.margin,
        effect=options.effect,
        clusters=options.clusters,
    )
    named = options.show.split(",") if options.show else launch.experiment.compare.show
    if options.json or options.csv:
        values = columns.trial_values(launch, named if options.show else columns.every(launch))
        print(as_json(comparison, values) if options.json else as_csv(comparison, values), end="\n" * options.json)
    else:
        further = [columns.table(launch, named)] if named else []
        for shown in (table(comparison, width()), *further):
            show(shown)
    return CANNOT_TELL if any(math.isnan(row.mean) for row in comparison.rows) else OK


def _published(options: argparse.Namespace, launch: "Launch") -> int:
    import json

    from harness.core.json_text import plain
    from reports.published_check import differing, figures, records, text

    found = figures(launch)
    published = launch.experiment.published
    assert published is not None
    if options.json:
        print(json.dumps(plain({"source": published.source, "figures": records(found)}), indent=1, ensure_ascii=False))
    else:
        print(text(found, published.source))
    return INVALID if differing(found) else OK


def _report(options: argparse.Namespace) -> int:
    from harness.storage.files import file_name
    from reports import report

    launch = launch_of(options)
    made = report(launch, on=options.metric, explore=tuple(options.explore))
    path = made.write(options.out or Path(f"{file_name(launch.experiment.name)}.html"))
    print(made.answer)
    print(f"{path}: {len(made.html.encode()) / 1e6:.1f} MB")
    return CANNOT_TELL if any(math.isnan(row.mean) for row in made.comparison.rows) else OK


def _bins(options: argparse.Namespace) -> int:
    from harness.running.launch_history import stored_session
    from harness.running.score_bins import EDGES, score_bins
    from reports import bins
    from reports.page.figures import bin_bars, standalone

    if options.plot and options.plot.suffix != ".svg":
        raise ConfigError(f"--plot {options.plot}: the chart is SVG; name a file that ends in .svg")
    try:
        edges = [float(part) for part in options.edges.split(",")] if options.edges else EDGES
    except ValueError:
        raise ConfigError(f"--edges {options.edges}: write numbers separated by commas, such as 0.8,0.6,0.4") from None
    found = score_bins(stored_session(experiment_of(options), store=options.store), edges)
    if not found:
        raise ConfigError("bins: no trial searches embeddings by cosine; add a `dense` or `hybrid` retriever")
    print(bins.as_json(found) if options.json else bins.text(found))
    if options.plot:
        write_file(options.plot, standalone(bin_bars(found)).encode())
    return OK
