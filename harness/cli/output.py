"""Output of the command line, without secrets and without terminal escape sequences from untrusted text."""

import contextlib
import io
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from harness.core.characters import visible
from harness.core.errors import ConfigError
from harness.core.secrecy import redact


class OutputClosedError(BrokenPipeError):
    """The reader of the output has closed it (`| head`)."""


class SafeStream(io.TextIOBase):
    """A text stream that redacts secrets, and writes escapes and other control characters in visible form.

    `inner` is the wrapped stream, for rich, which sends its own escapes to a terminal.
    """

    def __init__(self, inner: TextIO) -> None:
        self.inner = inner

    def write(self, text: str) -> int:
        """Writes the safe form of a text; returns the length of the text. Raises OutputClosedError."""
        safe = visible(redact(text))
        try:
            self.inner.write(safe)
        except BrokenPipeError:
            raise OutputClosedError from None
        except UnicodeEncodeError:  # a terminal whose encoding is not Unicode
            encoding = self.inner.encoding or "ascii"
            self.inner.write(safe.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        """Flushes the wrapped stream. Raises OutputClosedError."""
        try:
            self.inner.flush()
        except BrokenPipeError:
            raise OutputClosedError from None

    def isatty(self) -> bool:
        """Whether the wrapped stream is a terminal."""
        return self.inner.isatty()

    def fileno(self) -> int:
        """The file descriptor of the wrapped stream."""
        return self.inner.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the wrapped stream."""
        return self.inner.encoding


@contextlib.contextmanager
def safe_output() -> Iterator[None]:
    """Replaces stdout and stderr by safe streams while the block runs."""
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
    """Prints a rich renderable; its texts may be untrusted. Raises OutputClosedError."""
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


def plain(text: str) -> Any:
    """Returns a text for rich, without markup, secrets and terminal escape sequences."""
    from rich.text import Text

    return Text(visible(redact(text)))


def width() -> int:
    """Returns the line width in characters: that of the terminal, else 170 instead of the 80 that rich assumes."""
    from rich.console import Console

    console = Console(file=getattr(sys.stdout, "inner", sys.stdout))
    return console.width if console.is_terminal else 170


def safe_file(content: bytes) -> bytes:
    """Returns the safe content of a file: of text, what `SafeStream` would write; of binary data, the same bytes."""
    try:
        return visible(redact(content.decode())).encode()
    except UnicodeDecodeError:
        return content


def write_file(path: Path, content: bytes) -> None:
    """Writes a file without secrets and creates its folder. Raises ConfigError if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(safe_file(content))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from None


def show_links(logged: Mapping[str, Mapping[str, str]]) -> None:
    """Prints where results were logged: links by name, for each destination."""
    for where, links in logged.items():
        print(f"{where}:")
        for name, link in links.items():
            print(f"  {name:<14} {link}")


def byte_size(size: float) -> str:
    """Returns a number of bytes in words: 900 B, 1.2 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
