"""Heading paths as context."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from harness.components.roles import Augmenter
from harness.core.records import Document

_LINE = re.compile(
    r"^(?:(?P<marks>#{1,6})[ \t]+(?P<text>[^\r\n]*)|[ ]{0,3}(?P<fence>```(?=[^`\r\n]*\r?$)|~~~)[^\r\n]*)\r?$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Heading(Augmenter):
    """The document's title and the path of Markdown headings above the chunk, joined by `separator`."""

    separator: str = " > "

    def augment(self, doc: Document, spans: Sequence[tuple[int, int]]) -> list[str]:
        """Return the heading path of each span; the title is not repeated if it is the first heading."""
        begins, paths = _paths(doc.text)
        contexts = []
        for start, _ in spans:
            at = bisect_right(begins, start) - 1
            path = paths[at] if at >= 0 else ()
            if doc.title and doc.title not in path[:1]:
                path = (doc.title, *path)
            contexts.append(self.separator.join(path))
        return contexts


def _unclosed(heading: str) -> str:
    """A heading without its closing number signs, if any."""
    text = heading.rstrip(" \t")
    bare = text.rstrip("#")
    return bare.rstrip(" \t") if bare != text and (not bare or bare[-1] in " \t") else text


def _paths(text: str) -> tuple[list[int], list[tuple[str, ...]]]:
    """The start offset of each heading, and the heading path from there on, outermost first."""
    begins: list[int] = []
    paths: list[tuple[str, ...]] = []
    open_headings: dict[int, str] = {}
    fence = ""
    for line in _LINE.finditer(text):
        if line["fence"]:
            fence = "" if fence == line["fence"] else fence or line["fence"]
        elif not fence:
            level = len(line["marks"])
            open_headings = {lower: name for lower, name in open_headings.items() if lower < level}
            open_headings[level] = _unclosed(line["text"])
            begins.append(line.start())
            paths.append(tuple(name for _, name in sorted(open_headings.items()) if name))
    return begins, paths
