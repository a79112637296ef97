"""HTML pages: the main content as Markdown, without navigation, headers, footers and scripts."""

import re
from typing import Any

from harness.data.documents.extracted import Extracted, of_markdown

_NOISE = (
    "script, style, template, noscript, nav, header, footer, aside, form, button, svg, iframe, object, canvas, dialog,"
    "[role=navigation], [role=search], [role=banner], [role=contentinfo], [aria-hidden=true], [hidden],"
    "a.headerlink, a.anchor-link, .sphinxsidebar, .related, .skip-link"
)
_MAIN = ("main", "[role=main]", "article", "body")
_LONG_GAP = re.compile(r"\n{3,}")


def of_html(content: bytes | str, encoding: str | None = None) -> Extracted:
    """Return the main content of a page as Markdown; `encoding` None reads the one that the page declares."""
    from bs4 import BeautifulSoup

    page = BeautifulSoup(content, "html.parser", from_encoding=encoding)
    title = page.title.get_text() if page.title else ""
    main = next((found for selector in _MAIN if (found := page.select_one(selector))), page)
    heading = main.select_one("h1")
    for part in main.select(_NOISE):
        # A header inside the content may hold its title.
        if part.name != "header" or not part.select_one("h1"):
            part.decompose()
    made = of_markdown(as_markdown(main), " ".join(heading.get_text().split()).rstrip("¶#") if heading else "")
    return Extracted(made.text, made.title or " ".join(title.split()), made.headings, metadata={"format": "html"})


def as_markdown(element: Any) -> str:
    """Return an element of a page as Markdown: headings, lists, tables and code; the text of links and no images."""
    from markdownify import MarkdownConverter

    converter = MarkdownConverter(
        heading_style="ATX",
        bullets="-",
        strip=["a", "img"],
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,
    )
    text = str(converter.convert_soup(element)).replace("\xa0", " ")
    lines = (line.rstrip() for line in text.splitlines())
    return _LONG_GAP.sub("\n\n", "\n".join(lines)).strip() + "\n"
