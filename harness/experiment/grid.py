"""Sets one axis of a grid in a trial: a slot, or a setting named by its dotted path."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from harness.components.component import Component, settings, step_labels
from harness.core.errors import ConfigError, did_you_mean
from harness.experiment.catalog import checked
from harness.experiment.parsing import slot_value
from harness.experiment.trial import Trial
from harness.experiment.trial_names import SLOTS


def with_axis(trial: Trial, axis: str, value: Any, *, where: str) -> Trial:
    """The trial with one axis of the grid set to `value`. Raises ConfigError if the axis or the value is invalid."""
    slot, *path = axis.split(".")
    if slot == "judges":
        raise ConfigError(f"{where}: all trials have the same judges; list each under `judges:` instead")
    if slot not in SLOTS:
        raise ConfigError(f"{where}: no slot named '{slot}'.{did_you_mean(slot, SLOTS)} Slots: {', '.join(SLOTS)}")
    if not path:
        return replace(trial, **{slot: slot_value(slot, value, where=where, base_dir=Path.cwd())})
    held: Any = getattr(trial, slot)
    parts = cast("tuple[Component, ...]", held if isinstance(held, tuple) else (held,))
    labels = step_labels(held) if isinstance(held, tuple) else [held.name()]
    routes = [(at, route) for at, part in enumerate(parts) if (route := _route(part, labels[at], path))]
    if len(routes) != 1:
        if routes:
            named = f"{slot}.{labels[routes[-1][0]]}.{path[-1]}"
            raise ConfigError(f"{where}: several steps have this setting; name one, such as {named}")
        if isinstance(held, tuple) and len(path) > 1 and path[0] not in labels:
            steps = ", ".join(labels) or "none"
            raise ConfigError(
                f"{where}: the selector has no step '{path[0]}'.{did_you_mean(path[0], labels)} Steps: {steps}; "
                "write `grid` as a list to vary a setting of only some trials"
            )
        known = [key for part in parts for key in settings(part)]
        setting = ".".join(path[1:] if len(path) > 1 and path[0] in labels else path)
        raise ConfigError(
            f"{where}: {'+'.join(labels) or 'none'} has no setting '{setting}'.{did_you_mean(path[-1], known)}"
            f" Settings: {', '.join(known) or 'none'}; write `grid` as a list to vary a setting of only some trials"
        )
    ((at, route),) = routes
    changed = _changed(parts[at], route, value, where=where)
    replaced = tuple(changed if place == at else part for place, part in enumerate(parts))
    filled: Any = replaced if isinstance(held, tuple) else changed
    return replace(trial, **{slot: filled})


def _route(part: Component, label: str, path: Sequence[str]) -> tuple[str, ...]:
    """The path to a setting inside a component's settings, without the component's own name; empty if there is none."""
    for route in (tuple(path), tuple(path[1:]) if path[0] == label else ()):
        inner: Any = settings(part, with_runtime=True)
        for key in route:
            inner = inner.get(key, _ABSENT) if isinstance(inner, dict) else _ABSENT
        if route and inner is not _ABSENT and not isinstance(inner, dict):
            return route
    return ()


_ABSENT = object()


def _changed(part: Component, route: Sequence[str], value: Any, *, where: str) -> Component:
    given = settings(part, with_runtime=True)
    inner = given
    for key in route[:-1]:
        inner = inner[key]
    inner[route[-1]] = value
    return checked(type(part), given, where=where)
