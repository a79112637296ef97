"""`harness export`: what trials retrieved, as files for other tools."""

import argparse
from pathlib import Path

from harness.cli.arguments import add_part_options, add_store_option, launch_of
from harness.cli.exit_codes import OK
from harness.cli.parser import CommandGroup


def add_export_command(commands: CommandGroup) -> None:
    """Adds `harness export`."""
    summary = "write what the trials of an experiment retrieved: TREC runs, passages, and qrels"
    commands.add("export", _export, summary, _export_options)


def _export_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", help="the experiment file, or the name of an experiment that has run")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="the folder to create")
    parser.add_argument("--final", action="store_true", help="use the newest launch on the locked query set")
    add_part_options(parser)
    add_store_option(parser)


def _export(options: argparse.Namespace) -> int:
    from reports.export import export

    for name in export(launch_of(options), options.out):
        print(options.out / name)
    return OK
