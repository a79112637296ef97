"""The line in errors about an experiment file: `x.yaml: grid.chunker[1]: …` becomes `x.yaml:12: grid.chunker[1]: …`."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from harness.core.errors import ConfigError
from harness.core.strict_yaml import StrictLoader

_REMEDIES = {
    "mapping values are not allowed": "a second `: ` in one line; put the text in quotes, or start a new line",
    "found character '\\t'": "a tab; indent with spaces",
    "cannot start any token": "a text that begins with a special character; put it in quotes",
    "could not find expected ':'": "expected `key: value`",
    "expected <block end>": "the indentation differs from that of the lines above",
    "expected ',' or ']'": "a list in [ ] that is not closed, or without commas",
    "expected ',' or '}'": "a mapping in { } that is not closed, or without commas",
    "found unexpected end of stream": "a quote that is not closed",
    "found undefined alias": "a `*` at the beginning of a text; put it in quotes",
    "expected the node content": "a text that begins with a special character; put it in quotes",
}
"""What is wrong in the words of someone who writes the file, by a part of what PyYAML says."""


def explained(error: yaml.MarkedYAMLError) -> str:
    """The fault of a file that is not YAML, and what would be right."""
    said = error.problem or error.context or ""
    remedy = next((text for part, text in _REMEDIES.items() if part in said), "")
    return f"not valid YAML: {remedy} ({said})" if remedy else said


@contextlib.contextmanager
def with_lines(path: Path) -> Iterator[None]:
    """Add the line to ConfigErrors that begin with the name of a file and a key in it."""
    try:
        yield
    except ConfigError as error:
        line = _line(path, str(error))
        if line is None:
            raise
        text = str(error).removeprefix(path.name)
        raise ConfigError(f"{path.name}:{line}{text}") from error.__cause__


def _line(path: Path, message: str) -> int | None:
    """The line of the key that a message is about; None if it names no key of the file."""
    start = f"{path.name}: "
    if not message.startswith(start):
        return None
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), StrictLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError):
        return None
    rest, line = message.removeprefix(start), None
    while node is not None:
        found = _next(node, rest)
        if found is None:
            break
        line, node, rest = found
    named = _key(node, match[1]) if (match := re.search(r"'([^']+)'", rest)) else None
    return named or line


def _next(node: yaml.Node, rest: str) -> tuple[int, yaml.Node, str] | None:
    """The part of a node that the rest of a message begins with: its line, its node, and what follows."""
    if isinstance(node, yaml.SequenceNode) and (match := re.match(r"\[([0-9]+)\]\.?", rest)):
        at = int(match[1])
        item = node.value[at] if at < len(node.value) else None
        return (item.start_mark.line + 1, item, rest[match.end() :]) if item is not None else None
    if isinstance(node, yaml.MappingNode):
        # Longest first: a key of the grid may be `selector.mmr.k`, beside `selector`.
        for key, value in sorted(node.value, key=lambda pair: -len(str(pair[0].value))):
            name = str(key.value)
            if rest.startswith(name) and rest[len(name) : len(name) + 1] in (".", "[", ":"):
                return key.start_mark.line + 1, value, rest[len(name) :].removeprefix(".")
    return None


def _key(node: yaml.Node | None, name: str) -> int | None:
    """The line of a key in a mapping."""
    for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
        if key.value == name:
            return int(key.start_mark.line) + 1
    return None
