"""Markdown files: the text as it is written, without front matter."""

import re

import yaml

from harness.core.strict_yaml import load_yaml
from harness.data.documents.extracted import Extracted, of_markdown

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?P<yaml>.*?\n)---[ \t]*\n+", re.DOTALL)


def of_markdown_file(text: str) -> Extracted:
    """Return a Markdown text; YAML at its beginning (front matter) becomes metadata, its `title` the title."""
    head = _FRONT_MATTER.match(text)
    found: object = None
    if head:
        try:
            found = load_yaml(head["yaml"])
        except yaml.YAMLError:
            found = None
    if not head or not isinstance(found, dict):
        return of_markdown(text, metadata={"format": "markdown"})
    kept = {str(key): value for key, value in found.items() if isinstance(value, str | int | float | bool)}
    title = str(kept.pop("title", ""))
    return of_markdown(text[head.end() :], title, {"format": "markdown", **kept})
