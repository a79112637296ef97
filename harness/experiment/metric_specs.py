"""The metrics of a trial: names of built-in measures, and components of the researcher's own."""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from harness.components.roles import Metric
from harness.core.errors import ConfigError
from harness.evaluation.facts import FACTS
from harness.evaluation.metrics import MEASURES, parse_metric
from harness.experiment.catalog import component

_NAME = re.compile(r"[a-z0-9_]+")


def metrics_of(
    listed: Any, own: Sequence[Any], *, where: str, own_where: str, base_dir: Path
) -> tuple[tuple[str, ...], tuple[Metric, ...]]:
    """Return the names of the metrics of a list, and the researcher's own metrics among them.

    An entry is a name such as `recall@5`, or a reference such as `my_metrics.py:NuggetRecall@5`, with settings as the
    value of a mapping. `own` are metrics, or specs of metrics, that the list names by their own names. Raises
    ConfigError for an unknown metric, or if two metrics have the same name.
    """
    if not isinstance(listed, list | tuple) or not listed:
        raise ConfigError(f"{where}: expected a list of names such as recall@5")
    known: dict[str, Metric] = {}
    for spec in own:
        made = spec if isinstance(spec, Metric) else component("metric", spec, where=own_where, base_dir=base_dir)
        _add(known, cast(Metric, made), own_where)
    # Settings hold for all entries of a class, so entries with settings come first.
    order = sorted(range(len(listed)), key=lambda at: not isinstance(listed[at], Mapping))
    found = {at: _name(listed[at], known, f"{where}[{at}]", base_dir) for at in order}
    names = [found[at] for at in range(len(listed))]
    for at, name in enumerate(names):
        try:
            parse_metric(name, known)
        except ConfigError as error:
            raise ConfigError(f"{where}[{at}]: {error}") from None
    return tuple(dict.fromkeys(names)), tuple(known.values())


def _name(entry: Any, known: dict[str, Metric], where: str, base_dir: Path) -> str:
    """The name of a metric; a component is added to those known."""
    reference, settings = next(iter(entry.items())) if isinstance(entry, Mapping) and len(entry) == 1 else (entry, None)
    if not isinstance(reference, str):
        got = f"got {entry!r:.60}"
        raise ConfigError(f"{where}: expected a name such as recall@5, or file.py:Class with settings, {got}")
    if ":" not in reference:
        if settings is not None:
            raise ConfigError(f"{where}: {reference} takes no settings")
        return reference
    named, at, cutoff = reference.rpartition("@")
    if not at or ":" not in named:
        named, at, cutoff = reference, "", ""
    spec = {named: {} if settings is None else settings}
    metric = cast(Metric, component("metric", spec, where=where, base_dir=base_dir))
    if settings is not None or type(known.get(metric.name())) is not type(metric):
        _add(known, metric, where)
    return f"{metric.name()}{at}{cutoff}"


def _add(known: dict[str, Metric], metric: Metric, where: str) -> None:
    name = metric.name()
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{where}: '{name}' cannot name a metric; use ASCII letters and digits in the class's name")
    if name in MEASURES:
        raise ConfigError(f"{where}: '{name}' is the name of a built-in metric; rename the class")
    if name in FACTS or name.startswith("step_"):
        raise ConfigError(f"{where}: '{name}' is the name of a fact reported with every trial; rename the class")
    if known.setdefault(name, metric) != metric:
        raise ConfigError(f"{where}: two metrics are named '{name}'; rename one of the classes, or give equal settings")


def require_distinct(own: Sequence[Metric], judged: Collection[str], where: str) -> None:
    """Raise ConfigError if a researcher's own metric has the name of a judge's measure."""
    for metric in own:
        if metric.name() in judged:
            raise ConfigError(f"{where}: '{metric.name()}' is also the name of a judge's measure; rename the class")
