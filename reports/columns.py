"""Further values of each trial, side by side: metrics, judges' measures, costs and latency."""

import math
from collections.abc import Sequence

from harness.core.errors import ConfigError, did_you_mean
from harness.evaluation.facts import FACTS, unit_of
from harness.evaluation.results import TrialResult
from harness.running.launch_result import Launch


def columns(launch: Launch, names: Sequence[str]) -> list[tuple[str, list[float]]]:
    """Returns each trial's values of `names`, NaN if one does not apply. Raises ConfigError for an unknown name."""
    known = {name for result in launch.results for name in (*result.scores, *result.judged, *result.efficiency)}
    known.update(FACTS)
    for name in names:
        if name not in known and not name.startswith("step_"):
            raise ConfigError(f"compare: no trial has '{name}'.{did_you_mean(name, known)} Facts: {', '.join(FACTS)}")
    return [(result.name, [value(result, name) for name in names]) for result in launch.results]


def every(launch: Launch) -> list[str]:
    """Returns the names of all values: requested metrics, metrics of the curves, judges' measures, facts."""
    found = dict.fromkeys(name for name in launch.experiment.metrics if name in launch.results[0].scores)
    for result in launch.results:
        found.update(dict.fromkeys((*result.scores, *result.judged, *result.efficiency)))
    return list(found)


def value(result: TrialResult, name: str) -> float:
    """Returns the mean of a metric or measure, or another fact; NaN if it does not apply."""
    if name in result.scores or name in result.judged:
        return result.mean(name)
    return float(result.efficiency.get(name, math.nan))


def trial_values(launch: Launch, names: Sequence[str]) -> list[tuple[str, dict[str, float]]]:
    """Returns each trial with the values of `names` by name, for `as_csv` and `as_json`."""
    return [(trial, dict(zip(names, numbers, strict=True))) for trial, numbers in columns(launch, names)]


def shown(name: str, number: float) -> str:
    """Returns a value as text, in the format of its unit: bytes, milliseconds, dollars, counts, or a score.

    >>> shown("index_bytes", 2_500_000), shown("latency_p50_ms", 12.345), shown("usd_per_query", 0.00012)
    ('2.5 MB', '12.3', '$0.00012')
    """
    if math.isnan(number):
        return "–"
    unit = unit_of(name)
    if unit == "bytes":
        return f"{number / 1e6:.1f} MB"
    if unit == "ms":
        return f"{number:.1f}"
    if unit == "s":
        return f"{number:,.1f} s"
    if unit == "usd":
        return f"${float(f'{number:.2g}'):.8f}".rstrip("0").rstrip(".") if number < 0.01 else f"${number:.4f}"
    if unit == "count":
        return f"{number:,.0f}" if number >= 100 or number == int(number) else f"{number:.1f}"
    return f"{number:.3f}"


def table(launch: Launch, names: Sequence[str]) -> "object":
    """Returns the values as a rich table. Raises ConfigError for an unknown name."""
    from rich import box
    from rich.table import Table

    grid = Table(title="side by side", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("trial", *names):
        own = name == "trial"
        grid.add_column(name, justify="left" if own else "right", overflow="fold", min_width=24 if own else None)
    for trial, numbers in columns(launch, names):
        grid.add_row(trial, *(shown(name, number) for name, number in zip(names, numbers, strict=True)))
    return grid


def markdown(launch: Launch, names: Sequence[str]) -> str:
    """Returns the values as a Markdown table. Raises ConfigError for an unknown name."""
    lines = ["", "| " + " | ".join(("trial", *names)) + " |", "|" + "---|" * (len(names) + 1)]
    for trial, numbers in columns(launch, names):
        cells = [trial.replace("|", "\\|"), *(shown(name, number) for name, number in zip(names, numbers, strict=True))]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])
