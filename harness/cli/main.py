"""The `harness` command: its parser, and the mapping of errors to exit codes."""

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from harness.cli.data import add_data_commands
from harness.cli.editor_commands import add_completion_command, add_schema_command
from harness.cli.exit_codes import CRASHED, OK, STOPPED, USAGE
from harness.cli.export_command import add_export_command
from harness.cli.gate_command import add_gate_command
from harness.cli.init import add_init_command
from harness.cli.judge import add_judge_commands
from harness.cli.list_command import add_list_command
from harness.cli.output import OutputClosedError, safe_output
from harness.cli.parser import CommandGroup, CommandParser
from harness.cli.plan_command import add_plan_command
from harness.cli.probe_command import add_probe_commands
from harness.cli.result_commands import add_bins_command, add_compare_command, add_report_command
from harness.cli.run_command import add_run_command
from harness.cli.store_commands import add_store_commands
from harness.cli.ui_command import add_ui_command
from harness.cli.watch_command import add_watch_command
from harness.core.blame import ended_by
from harness.core.characters import in_one_line
from harness.core.errors import ComponentError, HarnessError
from harness.core.own_packages import require_own_packages

_COMMANDS = (
    add_plan_command,
    add_run_command,
    add_watch_command,
    add_compare_command,
    add_report_command,
    add_gate_command,
    add_bins_command,
    add_export_command,
    add_probe_commands,
    add_list_command,
    add_init_command,
    add_ui_command,
    add_data_commands,
    add_judge_commands,
    add_store_commands,
    add_schema_command,
    add_completion_command,
)
"""The functions that add the commands, in the order of the help text."""

_RENAMED = {"bands": "bins"}
"""Commands that were renamed in version 0.2: old to new name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code.

    A `HarnessError` is one line on stderr and exit code 2, followed by a traceback if a custom component raised an
    error; an unexpected exception is a traceback and exit code 70.
    """
    with safe_output():
        given = sys.argv[1:] if arguments is None else arguments
        if given and given[0] in _RENAMED:
            print(f"harness: `{given[0]}` is now called `{_RENAMED[given[0]]}`", file=sys.stderr)
            return USAGE
        options = command_line().parse_args(given)
        command: Callable[[argparse.Namespace], int] = options.command
        try:
            require_own_packages()
            return command(options)
        except HarnessError as error:
            print(f"harness: {in_one_line(str(error))}", file=sys.stderr)
            if isinstance(error, ComponentError):
                print(error.details, end="", file=sys.stderr)
            return USAGE
        except OutputClosedError:
            # Python would report the error again while closing stdout.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return OK
        except KeyboardInterrupt:
            print("harness: stopped; finished work is kept, run again to continue", file=sys.stderr)
            return STOPPED
        except SystemExit as ended:
            # A component that exits with 0 or 1 must not look like a successful run or a verdict.
            print(f"harness: {ended_by(ended)}", file=sys.stderr)
            return USAGE
        except BaseException:
            traceback.print_exc()
            return CRASHED


class _Version(argparse.Action):
    """Prints the installed version; reads it only when it is asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(nargs=0, **settings)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"harness {version('retrieval-harness')}")
        parser.exit()


def command_line() -> CommandParser:
    """The parser of all commands."""
    parser = CommandParser(
        prog="harness",
        description="Evaluate retrieval for RAG: one YAML file defines a grid of trials, scored in MLflow.",
    )
    parser.add_argument("--version", action=_Version, help="show the version and exit")
    commands = CommandGroup(parser)
    for add in _COMMANDS:
        add(commands)
    return parser
