"""Splitters of other libraries, by the name of their class."""

import importlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from harness.errors import ConfigError, did_you_mean

Option = str | int | float | bool | list[str] | None
Options = dict[str, Option]
"""Arguments of a splitter's constructor."""


def built(chunker: str, module: str, name: str, options: Mapping[str, Option]) -> Any:
    """The splitter `name` of a module, made once; raises ConfigError where there is none, or not with these options."""
    return _built(chunker, module, name, json.dumps(dict(options), sort_keys=True))


@lru_cache(maxsize=8)
def _built(chunker: str, module: str, name: str, options: str) -> Any:
    where = f"chunker {chunker}"
    try:
        library = importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ConfigError(f"{where}: {package} is missing; pip install 'retrieval-harness[adapters]'") from error
    made = getattr(library, name, None)
    if not isinstance(made, type):
        known = [found for found in dir(library) if found[0].isupper()]
        raise ConfigError(f"{where}: {module} has no splitter '{name}'.{did_you_mean(name, known)}")
    try:
        return made(**json.loads(options))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {name}: {' '.join(str(error).split())[:200]}") from error
