"""Attributes faults to components: what a custom component must not do becomes a one-line error that names it."""

import contextlib
import traceback
from collections.abc import Iterator
from pathlib import Path

from harness.core.errors import ComponentError, ConfigError, HarnessError
from harness.core.own_packages import HOME, OWN_PACKAGES, is_built_in


def ended_by(ended: SystemExit) -> str:
    """An error message that says which file and line called `sys.exit`."""
    frames = traceback.extract_tb(ended.__traceback__)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "a component"
    return f"{where}: ended the process (sys.exit({ended.code!r})), so there is no result; raise an error instead"


@contextlib.contextmanager
def blamed(component: object, part: str, *given: object) -> Iterator[None]:
    """Run a component's code and report its faults in its name.

    `part` names the component and the document or query it works on. Raises ConfigError if the code ends the process,
    changes a list or array it was `given`, or raises FaultyReturn; ComponentError if a custom component raises anything
    else. What a built-in component raises is a bug of the harness, and passes.
    """
    lists = [(one, list(one)) for one in given if isinstance(one, list)]
    try:
        yield
    except (HarnessError, MemoryError) as error:
        if not isinstance(error, FaultyReturn):
            raise
        raise ConfigError(f"{part}: {error}") from None
    except SystemExit as ended:
        raise ConfigError(f"{part}: {ended_by(ended)}") from None
    except Exception as error:
        if isinstance(error, ValueError) and "read-only" in str(error):
            raise ConfigError(f"{part}: changes an array it was given; work on a copy of it") from error
        if is_built_in(component):
            raise
        raise fault_of(part, error) from error
    for one, before in lists:
        if len(one) != len(before) or any(new is not old for new, old in zip(one, before, strict=True)):
            raise ConfigError(f"{part}: changes a list it was given; work on a copy of it")


def fault_of(part: str, error: BaseException) -> ComponentError:
    """The fault of a custom component: what it raised, where in its file, and the traceback of its own code."""
    found = traceback.TracebackException.from_exception(error)
    outside = [at for at, frame in enumerate(found.stack) if not _is_ours(frame.filename)]
    if outside:
        del found.stack[: outside[0]]
    last = found.stack[-1] if found.stack else None
    place = f" ({Path(last.filename).name}:{last.lineno})" if last else ""
    said = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
    return ComponentError(f"{part}: {said}{place}", "".join(found.format()))


def _is_ours(file: str) -> bool:
    """Whether a file belongs to the harness, or to the import system of Python."""
    return file.startswith("<frozen") or any(Path(file).is_relative_to(HOME / name) for name in OWN_PACKAGES)


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
