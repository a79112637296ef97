"""YAML 1.2 without duplicate keys."""

import re
from typing import Any

import yaml


class StrictLoader(yaml.SafeLoader):
    """A safe loader for YAML 1.2 that rejects duplicate keys.

    PyYAML's YAML 1.1 loader silently keeps the second of two equal keys, and reads the key `on` as true, 0200 as 128,
    1e-3 as text and 2026-01-31 as a date.
    """


def _mapping(loader: StrictLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[str] = set()
    for key, _ in node.value:
        if key.tag == "tag:yaml.org,2002:str" and key.value in seen:
            raise yaml.MarkedYAMLError(problem=f"key '{key.value}' is written twice", problem_mark=key.start_mark)
        seen.add(key.value if isinstance(key.value, str) else "")
    loader.flatten_mapping(node)
    return dict(loader.construct_mapping(node, deep=True))


_SCALARS = {
    "bool": "true|false",
    "int": "[-+]?(0|[1-9][0-9]*)",
    "float": r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+",
}
StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in (*_SCALARS, "timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _kind, _pattern in _SCALARS.items():
    StrictLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_kind}", re.compile(f"^(?:{_pattern})$"), list("tf-+.0123456789")
    )
StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?P<yaml>.*?\n)---[ \t]*(?:\n+|\Z)", re.DOTALL)
_LARGEST = 200_000
"""Maximum number of values in a file with all aliases expanded; only a malicious file has more."""


def load_yaml(text: str) -> Any:
    """The value of a YAML text. Raises yaml.YAMLError if it is invalid, nested too deeply, or expands too far."""
    try:
        value = yaml.load(text, StrictLoader)
        _require_bounded(value)
    except RecursionError:
        raise yaml.YAMLError("nested too deep, or an alias that refers to itself") from None
    except (ValueError, TypeError, AttributeError, LookupError, OverflowError) as error:
        # A number with more digits than Python accepts, or a tag whose text does not fit its type.
        raise yaml.YAMLError(f"a value that cannot be read: {str(error).partition(';')[0]}") from None
    return value


def front_matter(text: str) -> tuple[str, str]:
    """The YAML between two lines of `---` at the beginning of a text, empty if there is none; and the rest."""
    head = _FRONT_MATTER.match(text)
    return (head["yaml"], text[head.end() :]) if head else ("", text)


def _require_bounded(value: Any) -> None:
    """Raise YAMLError if aliases of aliases expand to more than `_LARGEST` values."""
    sizes: dict[int, int] = {}

    def size(inner: Any) -> int:
        if not isinstance(inner, dict | list):
            return 1
        if id(inner) not in sizes:
            children = [*inner, *inner.values()] if isinstance(inner, dict) else inner
            sizes[id(inner)] = 1 + sum(map(size, children))
        return sizes[id(inner)]

    if size(value) > _LARGEST:
        raise yaml.YAMLError(f"aliases that expand to more than {_LARGEST:,} values")


class StrictDumper(yaml.SafeDumper):
    """Quotes every text that `StrictLoader` or a YAML 1.1 loader would read as another type."""


for _first, _resolvers in StrictLoader.yaml_implicit_resolvers.items():
    for _tag, _regexp in _resolvers:
        StrictDumper.add_implicit_resolver(_tag, _regexp, [_first])
