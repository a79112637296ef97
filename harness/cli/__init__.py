"""The command line: a module for each group of commands, all fast to import."""

from harness.cli.main import main

__all__ = ["main"]
