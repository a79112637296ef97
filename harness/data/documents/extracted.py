"""What is extracted from a file: its text, and where pages and headings begin in it."""

import itertools
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple


class Heading(NamedTuple):
    """A heading: the character at which it begins, its level (1 for the highest) and its text."""

    start: int
    level: int
    text: str


@dataclass(frozen=True)
class Extracted:
    """The text of a file, its title, its headings and, if it has pages, the character at which each begins."""

    text: str
    title: str = ""
    headings: Sequence[Heading] = ()
    pages: Sequence[int] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return the metadata of the document, with `headings` and `pages` if it has any."""
        made = dict(self.metadata)
        made |= {"headings": [list(heading) for heading in self.headings]} if self.headings else {}
        return made | ({"pages": list(self.pages)} if self.pages else {})


def of_markdown(text: str, title: str = "", metadata: Mapping[str, Any] | None = None) -> Extracted:
    """Return a Markdown text with its headings. Without a title, the first heading of the highest level is taken."""
    headings = list(_headings(text))
    if not title and headings:
        title = min(headings, key=lambda heading: (heading.level, heading.start)).text
    return Extracted(text, title, headings, metadata=metadata or {})


def _headings(text: str) -> list[Heading]:
    starts = [0, *(match.end() for match in re.finditer(r"\r\n?|\n", text))]
    tokens = _parser().parse(text)
    return [
        Heading(starts[token.map[0]], int(token.tag[1]), _plain(inline.content))
        for token, inline in itertools.pairwise(tokens)
        if token.type == "heading_open" and not token.level and _plain(inline.content)
    ]


def _plain(inline: str) -> str:
    """A heading without the marks of code, emphasis and links."""
    bare = re.sub(r"!?\[([^\[\]]{0,200})\](?:\([^()]{0,200}\)|\{[^{}]{0,200}\})?", r"\1", inline)
    return " ".join(re.sub(r"[`*]|\{#[^{}]{0,200}\}|(?<!\w)_|_(?!\w)|\\(?=\W)", "", bare).split())


@lru_cache(maxsize=1)
def _parser() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table").disable(["text_join"])


def place_in(metadata: Mapping[str, Any], start: int) -> str:
    """Return where a character is in its document, by the metadata of `Extracted.record`; "" if they do not say.

    Metadata of the same names that have another form are a user's own, and are left alone.

    >>> place_in({"headings": [[0, 1, "Install"], [40, 2, "Linux"]], "pages": [0, 30]}, 50)
    'page 2, Install > Linux'
    """
    parts = []
    pages, headings = metadata.get("pages"), metadata.get("headings")
    if isinstance(pages, list) and pages and all(isinstance(page, int) for page in pages):
        parts.append(f"page {max(1, bisect_right(pages, start))}")
    path: dict[int, str] = {}
    for heading in headings if isinstance(headings, list) and all(map(_is_heading, headings)) else ():
        at, level, text = heading
        if at > start:
            break
        path = {above: name for above, name in path.items() if above < level} | {level: text}
    return ", ".join([*parts, *([" > ".join(path.values())] if path else [])])


def _is_heading(value: Any) -> bool:
    return isinstance(value, list) and [type(part) for part in value] == [int, int, str]
