"""The parser of the command line: groups of commands, whose options are added on first use and never abbreviated."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from harness.cli.exit_codes import USAGE
from harness.core.errors import did_you_mean

Command = Callable[[argparse.Namespace], int]
"""Runs a command and returns its exit code."""


class CommandParser(argparse.ArgumentParser):
    """The parser of one command. Its options are added on first use, so that other commands do not import for them."""

    def __init__(self, **settings: Any) -> None:
        # An abbreviated option would change its meaning when a longer one is added.
        super().__init__(**{**settings, "allow_abbrev": False})
        self.group: CommandGroup | None = None
        self._options: Callable[[argparse.ArgumentParser], None] | None = None

    def on_first_use(self, add_options: Callable[[argparse.ArgumentParser], None] | None) -> None:
        """Sets the function that adds the options."""
        self._options = add_options

    def complete(self) -> None:
        """Adds the options now."""
        if self._options is not None:
            add, self._options = self._options, None
            add(self)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Adds the options of the command, then parses; an unknown option is an error of this command."""
        self.complete()
        if self.group and not args:
            self.print_help()
            self.exit(USAGE)
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            known = [option for action in self._actions for option in action.option_strings]
            close = did_you_mean(unknown[0].partition("=")[0], known)
            kind = "option" if unknown[0].startswith("-") else "further argument"
            self.error(f"no {kind} '{unknown[0]}'.{close}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Ends the process with one line: the fault, and the usage of the command that was called."""
        end = "" if message.endswith(("?", ".")) else "."
        self.exit(USAGE, f"{self.prog}: {message}{end} Usage: {self._short_usage()}\n")

    def _short_usage(self) -> str:
        """The command with its arguments, and with its required options; other options are not named."""
        optional = any(a.option_strings and not a.required and a.dest != "help" for a in self._actions)
        formatter = self._get_formatter()
        named = [action for action in self._actions if not action.option_strings or action.required]
        formatter.add_usage(None, named, self._mutually_exclusive_groups, prefix="")
        return " ".join(formatter.format_help().split()) + (" [OPTION ...]" if optional else "")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            what = "command" if isinstance(action, argparse._SubParsersAction) else "choice"
            message = f"no {what} '{value}'.{did_you_mean(str(value), known)} Known: {', '.join(known)}"
            raise argparse.ArgumentError(None if what == "command" else action, message)


class CommandGroup:
    """The subcommands of one parser: `harness ...`, `harness data ...`, `harness judge ...`."""

    def __init__(self, parser: CommandParser) -> None:
        self.parser = parser
        parser.group = self
        self._commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=CommandParser)

    def add(
        self, name: str, work: Command, summary: str, options: Callable[[argparse.ArgumentParser], None] | None = None
    ) -> None:
        """Adds a command; `work` runs it and returns the exit code, `options` adds its options to its parser."""
        parser = self._commands.add_parser(name, help=summary, description=summary)
        parser.set_defaults(command=work)
        parser.on_first_use(options)

    def add_group(self, name: str, summary: str) -> "CommandGroup":
        """Adds a command with subcommands and returns their group."""
        return CommandGroup(self._commands.add_parser(name, help=summary, description=summary))

    def parsers(self) -> Sequence[CommandParser]:
        """The parsers of all commands."""
        return list(self._commands.choices.values())


def whole_number(text: str) -> int:
    """The type of an option that is a whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number, got '{text}'") from None


def number(text: str) -> float:
    """The type of an option that is a number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, got '{text}'") from None
