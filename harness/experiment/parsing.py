"""From the value of a slot, in YAML or in Python, to checked components."""

from pathlib import Path
from typing import Any, cast

from harness.components.component import Component
from harness.components.roles import ROLES, BaseReranker, Selector
from harness.components.selectors.presets import DEFAULT_RERANKER, PRESETS
from harness.core.errors import ConfigError, did_you_mean
from harness.experiment.catalog import BUILTINS, component


def slot_value(slot: str, spec: Any, *, where: str, base_dir: Path) -> Any:
    """The value of a slot: a component, or for the selector a tuple of steps. Raises ConfigError if it is invalid."""
    if isinstance(spec, Component):
        if not isinstance(spec, ROLES[slot]):
            raise ConfigError(f"{where}: {spec!r} is not a {slot}")
        return (spec,) if slot == "selector" else spec
    if slot != "selector":
        return component(slot, spec, where=where, base_dir=base_dir)
    if spec is None or spec == "none":
        return ()
    specs = list(spec) if isinstance(spec, list | tuple) else [spec]
    places = [f"{where}[{at}]" if isinstance(spec, list | tuple) else where for at in range(len(specs))]
    return tuple(
        step for one, place in zip(specs, places, strict=True) for step in _steps(one, where=place, base_dir=base_dir)
    )


def _steps(spec: Any, *, where: str, base_dir: Path) -> tuple[Selector, ...]:
    """The steps of a selector spec: one step, or those of a preset."""
    if isinstance(spec, Selector):
        return (spec,)
    name = next(iter(spec), None) if isinstance(spec, dict) and len(spec) == 1 else spec
    if isinstance(name, str) and ":" not in name and name not in (*PRESETS, *BUILTINS["selector"]):
        known = [*BUILTINS["selector"], *PRESETS]
        message = f"no selector named '{name}'.{did_you_mean(name, known)} Built in: {', '.join(known)}"
        raise ConfigError(f"{where}: {message}; custom: file.py:Class")
    if not isinstance(name, str) or name not in PRESETS:
        return (cast(Selector, component("selector", spec, where=where, base_dir=base_dir)),)
    given = spec[name] or {} if isinstance(spec, dict) else {}
    if not isinstance(given, dict) or not set(given) <= {"rerank"}:
        raise ConfigError(f"{where}: {name}: expected nothing, or `rerank` with a reranker or none")
    if "rerank" not in given:
        return PRESETS[name].steps(DEFAULT_RERANKER)
    if given["rerank"] in (None, "none"):
        return PRESETS[name].steps(None)
    reranker = component("selector", given["rerank"], where=f"{where}.{name}.rerank", base_dir=base_dir)
    if not isinstance(reranker, BaseReranker):
        raise ConfigError(f"{where}.{name}.rerank: {reranker.name()} is not a reranker")
    return PRESETS[name].steps(reranker)


def key_path(where: str, key: str) -> str:
    """The location of a key for error messages: `file.yaml: key` at the top level, else `parent.key`."""
    return f"{where} {key}" if where.endswith(":") else f"{where}.{key}"
