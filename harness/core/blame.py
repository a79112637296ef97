"""Which part of a trial is at fault: what a researcher's component must not do becomes one line that names it."""

import contextlib
import traceback
from collections.abc import Iterator

from harness.core.errors import ConfigError


def ended_by(ended: SystemExit) -> str:
    """Who ended the process, by file and line."""
    frames = traceback.extract_tb(ended.__traceback__)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "a component"
    return f"{where}: ended the process (sys.exit({ended.code!r})), so there is no result; raise an error instead"


@contextlib.contextmanager
def blamed(part: str, *given: object) -> Iterator[None]:
    """While a component works: it may neither end the process nor change the lists and arrays it was `given`.

    `part` names it, and the document or query it works on. Raises ConfigError.
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


class FaultyReturn(ConfigError):  # noqa: N818 - raised by what a component calls to build its answer
    """What a component gave cannot be used; `blamed` says whose it is."""


@contextlib.contextmanager
def understood(part: str, expected: str) -> Iterator[None]:
    """While what a component returned is read: whatever cannot be read is its fault. Raises ConfigError."""
    try:
        yield
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:160]
        raise ConfigError(f"{part}: what it returned cannot be read; expected {expected} ({said})") from error


def shown(text: str, limit: int = 40) -> str:
    """The beginning of a text, between quotes."""
    return repr(text if len(text) <= limit else f"{text[:limit]}…")
