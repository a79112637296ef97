"""The command line: a module for each group of commands, all of them light to import."""

from harness.cli.main import main

__all__ = ["main"]
