"""PDF files: the text of each page, and the headings of the outline."""

import io
from collections.abc import Iterator, Sequence
from typing import Any

from harness.data.documents.extracted import Extracted, Heading
from harness.data.documents.unreadable import UnreadableError

_GAP = "\n\n"


def of_pdf(content: bytes, _: str = "") -> Extracted:
    """Return the text of a PDF with its pages. Raises UnreadableError if it is damaged or protected."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableError("is protected by a password")
        texts = [_tidy(page.extract_text()) for page in reader.pages]
        title = str((reader.metadata and reader.metadata.title) or "").strip()
        outline = list(_outline(reader, reader.outline, 1))
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableError(f"is not a readable PDF: {type(error).__name__}: {error}") from None
    pages, at = [], 0
    for text in texts:
        pages.append(at)
        at += len(text) + len(_GAP)
    headings = [Heading(_start(title, texts[page], pages[page]), level, title) for page, level, title in outline]
    return Extracted(_GAP.join(texts), title, sorted(headings), pages, {"format": "pdf"})


def _tidy(text: str) -> str:
    """The text of a page without half surrogate pairs, NUL characters and white space at the ends of lines."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "")
    return "\n".join(line.rstrip() for line in whole.splitlines()).strip()


def _outline(reader: Any, entries: Sequence[Any], level: int) -> Iterator[tuple[int, int, str]]:
    """The entries of the outline: page (from 0), level and title."""
    for entry in entries:
        if isinstance(entry, list):
            yield from _outline(reader, entry, level + 1)
        elif entry.title:
            page = reader.get_destination_page_number(entry)
            if page is not None and page >= 0:
                yield page, level, " ".join(str(entry.title).split())


def _start(title: str, page: str, begin: int) -> int:
    """Where a heading begins: at its text on its page if it occurs there, else at the page."""
    return begin + max(0, page.find(title))
