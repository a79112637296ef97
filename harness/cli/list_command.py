"""`harness list`: the built-in components and metrics, by role or by name."""

import argparse
from collections.abc import Iterator

from harness.cli.exit_codes import OK
from harness.cli.parser import CommandGroup
from harness.core.errors import ConfigError, did_you_mean

ROLES = ("chunkers", "augmenters", "embedders", "retrievers", "selectors", "judges", "metrics")


def add_list_command(commands: CommandGroup) -> None:
    """Adds `harness list`."""
    commands.add("list", _list, "list built-in components and metrics, or describe one of them", _list_options)


def _list_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help=f"{', '.join(ROLES)}, or the name of a component or metric (default: the names of all)",
    )


def _list(options: argparse.Namespace) -> int:
    name: str | None = options.name
    if name is None:
        for role in ROLES:
            print(f"{role:<11} {' '.join(_names(role))}")
        return OK
    role = name if name in ROLES else f"{name}s"
    described = _role(role) if role in ROLES else _named(name)
    for line in described:
        print(line)
    return OK


def _names(role: str) -> list[str]:
    from harness.components.selectors.presets import PRESETS
    from harness.evaluation.metrics import MEASURES
    from harness.experiment.catalog import BUILTINS

    if role == "metrics":
        return list(MEASURES)
    return [*(PRESETS if role == "selectors" else ()), *BUILTINS[role.removesuffix("s")]]


def _role(role: str) -> Iterator[str]:
    """The components of a role with their settings, or the metrics."""
    for name in _names(role):
        yield from _metric(name, 24) if role == "metrics" else _component(role, name, whole=False)


def _named(name: str) -> Iterator[str]:
    """All that is known of the components and metrics of a name. Raises ConfigError if there are none."""
    bare = name.partition("@")[0]
    known = {role: _names(role) for role in ROLES}
    found = [role for role, names in known.items() if (bare if role == "metrics" else name) in names]
    if not found:
        every = [*ROLES, *(one for names in known.values() for one in names)]
        raise ConfigError(
            f"list: no component or metric '{name}'.{did_you_mean(name, every)} Roles: {', '.join(ROLES)}"
        )
    for role in found:
        yield from _metric(bare) if role == "metrics" else _component(role, name, whole=True)


def _metric(name: str, width: int = 0) -> Iterator[str]:
    from harness.evaluation.metrics import MEASURES

    measure = MEASURES[name]
    title = f"{name}@0.1" if measure.cutoff == "level" else name
    yield f"{title:<{width}} {measure.help}" if width else f"{title} (metric): {measure.help}"


def _component(role: str, name: str, *, whole: bool) -> Iterator[str]:
    from harness.components.selectors.presets import PRESETS
    from harness.experiment.catalog import describe

    if role == "selectors" and name in PRESETS:
        preset = PRESETS[name]
        steps = f"top_k {preset.fetch}, rerank, normalize, mmr {preset.k} with relevance {preset.relevance:g}"
        yield f"{name}: A preset: the steps {steps}."
        yield '    rerank = "rerank"'
        return
    kind = role.removesuffix("s")
    described = describe(kind, name)
    yield f"{name} ({kind}): {described.summary}" if whole else f"{name}: {described.summary}"
    if whole and described.details:
        yield f"\n{described.details}\n"
    for setting in described.settings:
        yield f"    {setting.name} = {setting.default}" + ("  (speed or cost only)" if setting.runtime else "")
