"""Reading a file of documents by its suffix."""

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from harness.core.errors import ConfigError, DataError
from harness.data.documents.extracted import Extracted
from harness.data.documents.html import of_html
from harness.data.documents.markdown import of_markdown_file
from harness.data.documents.pdf import of_pdf
from harness.data.documents.restructured_text import of_restructured_text
from harness.data.documents.unreadable import UnreadableError
from harness.data.documents.word import of_word


class Kind(NamedTuple):
    """A kind of file: how its bytes become text, and the packages that this takes."""

    name: str
    read: Callable[[bytes, str], Extracted]
    packages: tuple[str, ...] = ()


def _of_text(content: bytes, encoding: str) -> Extracted:
    return Extracted(decoded(content, encoding), metadata={"format": "text"})


def _of_markdown(content: bytes, encoding: str) -> Extracted:
    return of_markdown_file(decoded(content, encoding))


def _of_html(content: bytes, encoding: str) -> Extracted:
    # The file itself may declare its encoding.
    return of_html(content, None if encoding == "utf-8" else encoding)


def _of_restructured_text(content: bytes, encoding: str) -> Extracted:
    return of_restructured_text(decoded(content, encoding))


_PAGES = ("bs4", "markdownify")
_MARKDOWN = Kind("Markdown", _of_markdown)
_REST = Kind("reStructuredText", _of_restructured_text, ("docutils", *_PAGES))
_HTML = Kind("HTML", _of_html, _PAGES)
_TEXT = Kind("plain text", _of_text)

KINDS: Mapping[str, Kind] = {
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".mdx": _MARKDOWN,
    ".rst": _REST,
    ".rest": _REST,
    ".html": _HTML,
    ".htm": _HTML,
    ".xhtml": _HTML,
    ".txt": _TEXT,
    ".text": _TEXT,
    ".pdf": Kind("PDF", of_pdf, ("pypdf",)),
    ".docx": Kind("Word", of_word, ("mammoth", *_PAGES)),
}
"""The kinds of files by suffix."""


def extracted(path: Path, encoding: str = "utf-8") -> Extracted:
    """Return the text of a file. Raises DataError if it cannot be read, ConfigError if a package is missing."""
    kind = KINDS[path.suffix.lower()]
    for package in kind.packages:
        if importlib.util.find_spec(package) is None:
            message = f"{package} is missing, which reads {kind.name}; pip install 'retrieval-harness[documents]'"
            raise ConfigError(f"{path}: {message}")
    try:
        return kind.read(path.read_bytes(), encoding)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        message = f"not {encoding.upper()} (byte {error.start}); name its --encoding, or leave it out with --exclude"
        raise DataError(f"{path}: {message}") from None
    except UnreadableError as error:
        raise DataError(f"{path}: {error}; leave it out with --exclude '{path.name}'") from None


def decoded(content: bytes, encoding: str) -> str:
    """The text of a file without a byte order mark, with line ends of one character."""
    text = content.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    return text.replace("\r\n", "\n").replace("\r", "\n")
