"""Errors that a user can fix.

    HarnessError              one line on stderr, no traceback, exit code 2
    ├── ConfigError           an experiment file or a setting; names the YAML path
    ├── ComponentError        a custom component raised an error; its traceback follows the line
    ├── DataError             a data set; names file and line
    ├── JudgeError            a model request: no key, no budget, no such model; names server and model
    └── StoreError            the store's disk: full, read-only, not a folder

Every other exception is a bug and shows its traceback.
"""

import difflib
from collections.abc import Iterable


class HarnessError(Exception):
    """An error that the user can fix; the message says where it is, what is wrong and what would be right."""


class ConfigError(HarnessError):
    """An error in an experiment file, a component's settings or the command line."""


class ComponentError(HarnessError):
    """A custom component raised an error: the line names it and its document or query; `details` is the traceback."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message, details)

    def __str__(self) -> str:
        return str(self.args[0])

    @property
    def details(self) -> str:
        """The traceback, beginning in the component's own code."""
        return str(self.args[1])


class DataError(HarnessError):
    """An error in a data set, located by file and line."""


class JudgeError(HarnessError):
    """A model cannot be called; the answers it gave before are kept."""


class StoreError(HarnessError):
    """The store cannot be read or written."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'recursive'?` if a known word is close to `word`, else an empty string.

    >>> did_you_mean("recursve", ["fixed", "recursive"])
    " Did you mean 'recursive'?"
    """
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean '{close[0]}'?" if close else ""
