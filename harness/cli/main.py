"""The `harness` command: its parser, and what becomes of errors."""

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence

from harness.cli.arguments import CommandGroup
from harness.cli.data import add_data_commands
from harness.cli.exit_codes import CRASHED, OK, STOPPED, USAGE
from harness.cli.gate_command import add_gate_command
from harness.cli.init import add_init_command
from harness.cli.judge import add_judge_commands
from harness.cli.list_command import add_list_command
from harness.cli.output import OutputClosedError, safe_output
from harness.cli.result_commands import add_bins_command, add_compare_command, add_report_command
from harness.cli.run_commands import add_plan_command, add_run_command
from harness.cli.ui_command import add_ui_command
from harness.core.blame import ended_by
from harness.core.characters import in_one_line
from harness.core.errors import HarnessError

_COMMANDS = (
    add_plan_command,
    add_run_command,
    add_compare_command,
    add_report_command,
    add_gate_command,
    add_bins_command,
    add_list_command,
    add_init_command,
    add_ui_command,
    add_data_commands,
    add_judge_commands,
)
"""In the order of the help text."""

_RENAMED = {"bands": "bins"}
"""Commands that had another name before version 0.2."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; a user's fault becomes one line on stderr, and what nobody foresaw its traceback and code 70."""
    with safe_output():
        given = sys.argv[1:] if arguments is None else arguments
        if given and given[0] in _RENAMED:
            print(f"harness: `{given[0]}` is now called `{_RENAMED[given[0]]}`", file=sys.stderr)
            return USAGE
        options = _parser().parse_args(arguments)
        command: Callable[[argparse.Namespace], int] = options.command
        try:
            return command(options)
        except HarnessError as error:
            print(f"harness: {in_one_line(str(error))}", file=sys.stderr)
            return USAGE
        except OutputClosedError:
            # Python would complain once more while closing it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return OK
        except KeyboardInterrupt:
            print("harness: stopped; what was finished is kept, run again to go on", file=sys.stderr)
            return STOPPED
        except SystemExit as ended:
            # Exit code 0 without a result, or 1 without an answer, would be taken for what they mean.
            print(f"harness: {ended_by(ended)}", file=sys.stderr)
            return USAGE
        except BaseException:
            traceback.print_exc()
            return CRASHED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="harness", description="Evaluate retrieval: one YAML file, a scored grid in MLflow."
    )
    commands = CommandGroup(parser)
    for add in _COMMANDS:
        add(commands)
    return parser
