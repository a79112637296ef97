"""What the command line prints: without secrets, and with nothing in it that a terminal would obey."""

import contextlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from harness.core.characters import visible
from harness.core.errors import ConfigError
from harness.core.secrecy import redact


class OutputClosedError(BrokenPipeError):
    """Whoever read our output has gone (`| head`)."""


class SafeStream(io.TextIOBase):
    """A text stream that redacts what is written to it, and shows escapes and other control characters as signs.

    `inner` is the stream behind it, for rich, which sends a terminal its own escapes.
    """

    def __init__(self, inner: TextIO) -> None:
        self.inner = inner

    def write(self, text: str) -> int:
        safe = visible(redact(text))
        try:
            self.inner.write(safe)
        except BrokenPipeError:
            raise OutputClosedError from None
        except UnicodeEncodeError:  # a terminal that knows less than Unicode
            encoding = self.inner.encoding or "ascii"
            self.inner.write(safe.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        try:
            self.inner.flush()
        except BrokenPipeError:
            raise OutputClosedError from None

    def isatty(self) -> bool:
        return self.inner.isatty()

    def fileno(self) -> int:
        return self.inner.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.inner.encoding


@contextlib.contextmanager
def safe_output() -> Iterator[None]:
    """While the block runs, whatever is printed is safe to print."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = SafeStream(sys.stdout), SafeStream(sys.stderr)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        sys.stdout, sys.stderr = before


def show(shown: Any) -> None:
    """Print a table of rich's, whatever texts of strangers are in it."""
    from rich.console import Console
    from rich.segment import Segment, Segments

    console = Console(width=width(), file=getattr(sys.stdout, "inner", sys.stdout))
    parts = [
        part if part.control else Segment(visible(redact(part.text)), part.style) for part in console.render(shown)
    ]
    try:
        console.print(Segments(parts), end="")
    except (BrokenPipeError, SystemExit):  # rich ends the process
        raise OutputClosedError from None


def width() -> int:
    """Characters in a line; where no terminal tells, lines must not be cut to the 80 that rich assumes."""
    from rich.console import Console

    console = Console(file=getattr(sys.stdout, "inner", sys.stdout))
    return console.width if console.is_terminal else 170


def safe_file(content: bytes) -> bytes:
    """A file as it may be written: of a text, what `SafeStream` would show; of a picture, the same bytes."""
    try:
        return visible(redact(content.decode())).encode()
    except UnicodeDecodeError:
        return content


def write_file(path: Path, content: bytes) -> None:
    """Write a file with its folder, its text without secrets. Raises ConfigError where that is refused."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(safe_file(content))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from None


def how_to_open(tracking: str | None) -> str:
    """How a person reaches the MLflow UI of a tracking URI (None: the default one)."""
    from harness.tracking import default_uri

    return "on its server" if (tracking or default_uri()).startswith("http") else "after `harness ui`"
