"""`harness schema` and `harness completion`: help for editors and shells."""

import argparse
from functools import partial
from pathlib import Path

from harness.cli.exit_codes import OK
from harness.cli.parser import CommandGroup, CommandParser

_SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")


def add_schema_command(commands: CommandGroup) -> None:
    """Adds `harness schema`."""
    summary = "print the JSON Schema of the experiment file, so that editors complete and check it"
    commands.add("schema", _schema, summary, _schema_options)


def _schema_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write it to a file, and show the line that an experiment begins with"
    )


def _schema(options: argparse.Namespace) -> int:
    from harness.cli.output import write_file
    from harness.experiment.schema import schema_text

    if options.out is None:
        print(schema_text(), end="")
        return OK
    write_file(options.out, schema_text().encode())
    print("begin an experiment file with this line (the path is relative to the file):")
    print(f"# yaml-language-server: $schema={options.out.as_posix()}")
    return OK


def add_completion_command(commands: CommandGroup) -> None:
    """Adds `harness completion`."""
    summary = "print a script that completes commands and options in a shell"
    commands.add("completion", partial(_completion, commands.parser), summary, _completion_options)


def _completion_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=_SHELLS, help='such as bash: eval "$(harness completion bash)"')


def _completion(parser: CommandParser, options: argparse.Namespace) -> int:
    import shtab

    _complete(parser)
    print(shtab.complete(parser, options.shell))
    return OK


def _complete(parser: CommandParser) -> None:
    """Adds the options of all commands, and marks the arguments that are files."""
    import shtab

    parser.complete()
    for action in parser._actions:
        if action.type is Path or action.dest in ("experiment", "source"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    for command in parser.group.parsers() if parser.group else ():
        _complete(command)
