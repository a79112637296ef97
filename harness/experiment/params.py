"""The settings of a trial as params: strings named by their paths in the YAML file, also used in MLflow."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from harness.components.component import Component, snake_case
from harness.components.roles import BaseRetriever
from harness.core.errors import ConfigError, did_you_mean
from harness.experiment.trial_names import SLOTS


def find_baseline(
    every: Sequence[Mapping[str, str]], wanted: Mapping[str, Any], where: str = "compare.baseline"
) -> int:
    """The index of the first trial whose params have all the wanted values. Raises ConfigError if there is none."""
    return matching(every, wanted, where)[0]


def matching(every: Sequence[Mapping[str, str]], wanted: Mapping[str, Any], where: str) -> list[int]:
    """The indices of the trials whose params have all the wanted values. Raises ConfigError if there is none.

    A component may be named as in YAML (`my_chunkers.py:ByHeading`), or by its class (`ByHeading`).
    """
    known = list(dict.fromkeys(key for params in every for key in params))
    asked = {key: param_text(value) for key, value in wanted.items()}
    for key, value in asked.items():
        if key not in known:
            close = did_you_mean(key, known)
            raise ConfigError(f"{where}: no param '{key}'.{close} Params: {', '.join(known)}")
        if key in SLOTS and not any(params.get(key) == value for params in every):
            asked[key] = snake_case(value.rpartition(":")[2])
    found = [at for at, params in enumerate(every) if has_values(params, asked)]
    if found:
        return found
    message = ", ".join(f"{key}: {value}" for key, value in asked.items())
    values = [value for key in asked for value in dict.fromkeys(params[key] for params in every if key in params)]
    close = did_you_mean(next(iter(asked.values())), values)
    raise ConfigError(
        f"{where}: no trial has {message}.{close} Values of {', '.join(asked)}: {', '.join(values)[:200]}"
    )


def has_values(params: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether the params contain all the wanted values."""
    return all(params.get(key) == value for key, value in wanted.items())


def param_text(value: Any) -> str:
    """The param value of a setting: text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def flat_params(prefix: str, values: Mapping[str, Any]) -> dict[str, str]:
    """Nested settings as params with dotted names below `prefix`."""
    flat: dict[str, str] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= flat_params(f"{prefix}.{key}", value)
        else:
            flat[f"{prefix}.{key}"] = param_text(value)
    return flat


def part_depths(part: Component) -> dict[str, str]:
    """The depth params of a fusion's retrievers; the fusion sets their depth, not their own setting."""
    if not isinstance(part, BaseRetriever) or not part.parts:
        return {}
    names = [f.name for f in fields(part) if isinstance(getattr(part, f.name), BaseRetriever)]  # type: ignore[arg-type]
    return {f"retriever.{name}.depth": str(inner.depth) for name, inner in zip(names, part.parts, strict=False)}
