"""Markdown files: the text as it is written, without front matter."""

import yaml

from harness.core.strict_yaml import front_matter, load_yaml
from harness.data.documents.extracted import Extracted, of_markdown


def of_markdown_file(text: str) -> Extracted:
    """Return a Markdown text; YAML at its beginning (front matter) becomes metadata, its `title` the title."""
    head, body = front_matter(text)
    try:
        found = load_yaml(head)
    except yaml.YAMLError:
        found = None
    if not isinstance(found, dict):
        return of_markdown(text, metadata={"format": "markdown"})
    kept = {str(key): value for key, value in found.items() if isinstance(value, str | int | float | bool)}
    title = str(kept.pop("title", ""))
    return of_markdown(body, title, {"format": "markdown", **kept})
