"""Attributes faults to components: what a custom component must not do becomes a one-line error that names it."""

import contextlib
import traceback
from collections.abc import Iterator

from harness.core.errors import ConfigError


def ended_by(ended: SystemExit) -> str:
    """An error message that says which file and line called `sys.exit`."""
    frames = traceback.extract_tb(ended.__traceback__)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "a component"
    return f"{where}: ended the process (sys.exit({ended.code!r})), so there is no result; raise an error instead"


@contextlib.contextmanager
def blamed(part: str, *given: object) -> Iterator[None]:
    """Run a component's code and report its faults in its name.

    `part` names the component and the document or query it works on. Raises ConfigError if the code ends the process,
    changes a list or array it was `given`, or raises FaultyReturn.
    """
    lists = [(one, list(one)) for one in given if isinstance(one, list)]
    try:
        yield
    except SystemExit as ended:
        raise ConfigError(f"{part}: {ended_by(ended)}") from None
    except FaultyReturn as fault:
        raise ConfigError(f"{part}: {fault}") from None
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise ConfigError(f"{part}: changes an array it was given; work on a copy of it") from error
    for one, before in lists:
        if len(one) != len(before) or any(new is not old for new, old in zip(one, before, strict=True)):
            raise ConfigError(f"{part}: changes a list it was given; work on a copy of it")


class FaultyReturn(ConfigError):  # noqa: N818 - raised by functions a component calls to build its return value
    """A component returned something that cannot be used; `blamed` adds the component's name."""


@contextlib.contextmanager
def understood(part: str, expected: str) -> Iterator[None]:
    """Read what a component returned. Raises ConfigError, naming `part`, if the value cannot be read as `expected`."""
    try:
        yield
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:160]
        raise ConfigError(f"{part}: what it returned cannot be read; expected {expected} ({said})") from error


def shown(text: str, limit: int = 40) -> str:
    """The first `limit` characters of a text, in quotes."""
    return repr(text if len(text) <= limit else f"{text[:limit]}…")
