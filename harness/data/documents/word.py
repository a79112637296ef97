"""Word files (DOCX): headings, paragraphs, lists and tables as Markdown."""

import io
import zipfile

from harness.data.documents.extracted import Extracted, of_markdown
from harness.data.documents.html import as_markdown
from harness.data.documents.unreadable import UnreadableError


def of_word(content: bytes, _: str = "") -> Extracted:
    """Return the text of a Word file. Raises UnreadableError if it is none."""
    import mammoth
    from bs4 import BeautifulSoup

    try:
        made = mammoth.convert_to_html(io.BytesIO(content))
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise UnreadableError(f"is not a Word file: {error}") from None
    return of_markdown(as_markdown(BeautifulSoup(made.value, "html.parser")), metadata={"format": "docx"})
