"""YAML as people mean it: version 1.2, and no key twice."""

import re
from typing import Any

import yaml


class StrictLoader(yaml.SafeLoader):
    """Safe YAML as of its version 1.2, which refuses a key written twice.

    YAML 1.1 would let the second of two keys win in silence, read the key `on` as true, 0200 as 128, 1e-3 as text and
    2026-01-31 as a date.
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


class StrictDumper(yaml.SafeDumper):
    """Quotes every text that this loader, or one of YAML 1.1, would read as something else."""


for _first, _resolvers in StrictLoader.yaml_implicit_resolvers.items():
    for _tag, _regexp in _resolvers:
        StrictDumper.add_implicit_resolver(_tag, _regexp, [_first])
