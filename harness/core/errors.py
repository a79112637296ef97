"""The faults a user can mend.

    HarnessError              one line on stderr, no traceback, exit code 2
    ├── ConfigError           an experiment file or a setting; names the YAML path
    ├── DataError             a data set; names file and line
    ├── JudgeError            a model that is asked: no key, no money, no such model; names server and model
    └── StoreError            the store's disk: full, read-only, not a folder

Every other exception is a bug and shows its traceback.
"""

import difflib
from collections.abc import Iterable


class HarnessError(Exception):
    """Something is wrong that the user can put right; the message says where, what, and what would be right."""


class ConfigError(HarnessError):
    """A fault in an experiment file, a component's settings or the command line."""


class DataError(HarnessError):
    """A fault in a data set, located by file and line."""


class JudgeError(HarnessError):
    """A model cannot be asked at all; what it had answered before is kept."""


class StoreError(HarnessError):
    """The store cannot be read or written."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'recursive'?` where a known word is close to `word`, else nothing.

    >>> did_you_mean("recursve", ["fixed", "recursive"])
    " Did you mean 'recursive'?"
    """
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean '{close[0]}'?" if close else ""
