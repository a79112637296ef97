"""An experiment's results compared with published figures."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.components.labels import read_labels
from harness.core.errors import ConfigError
from harness.experiment.params import find_baseline
from harness.experiment.published import Published, PublishedRow
from harness.running.judging.agreement_study import agree_with_labels
from harness.running.launch_result import Launch
from harness.running.models import Models
from reports.columns import value


@dataclass(frozen=True)
class Figure:
    """A published value and the reproduced one (`ours`); `differs` is the known reason for a difference, if any."""

    name: str
    metric: str
    published: float
    ours: float
    tolerance: float
    differs: str = ""

    @property
    def difference(self) -> float:
        """The reproduced value minus the published one."""
        return self.ours - self.published

    @property
    def within(self) -> bool:
        """Whether the difference is within the tolerance."""
        # Tolerances are decimal fractions, which binary differences miss by their last bits.
        return bool(abs(self.difference) <= self.tolerance + 1e-9)


def figures(launch: Launch, *, models: Models | None = None) -> list[Figure]:
    """Returns the launch's figures with the published ones of its experiment, in their order.

    Raises ConfigError if the experiment has no `published` part, or names an unknown trial, metric or judge there.
    """
    published = launch.experiment.published
    if published is None:
        message = f"compare --published: '{launch.experiment.name}' has no `published` part"
        raise ConfigError(f"{message}; name an experiment file that has one, such as those in experiments/published")
    return [figure for row in published.rows for figure in _figures(launch, published, row, models)]


def _figures(launch: Launch, published: Published, row: PublishedRow, models: Models | None) -> Iterator[Figure]:
    if row.judge:
        assert launch.session is not None
        people = read_labels(Path(published.people))
        store = launch.session.store
        found = agree_with_labels(launch.experiment, people, store=store, judge=row.judge, models=models)
        known = {"kappa": found.kappa.value, "graded_kappa": found.graded}
        name = f"{row.judge} {found.model}"
    else:
        at = find_baseline([result.params for result in launch.results], row.trial, "published.rows.trial")
        result = launch.results[at]
        known, name = {metric: value(result, metric) for metric in row.values}, result.name
    for metric, figure in row.values.items():
        yield Figure(name, metric, figure, known[metric], published.tolerance, row.differs)


def text(found: Sequence[Figure], source: str) -> str:
    """Returns the figures as a table, and how many agree."""
    width = max(len(figure.name) for figure in found)
    metric = max(len(figure.metric) for figure in found)
    lines = [source, "", f"{'':<{width}}  {'':<{metric}}  published     ours  difference"]
    for figure in found:
        message = "" if figure.within else f"  {figure.differs or 'differs'}"
        lines.append(
            f"{figure.name:<{width}}  {figure.metric:<{metric}}  {figure.published:>9.4f}  {figure.ours:>7.4f}  "
            f"{figure.difference:>+10.4f}{message}".rstrip()
        )
    agree, off = sum(figure.within for figure in found), differing(found)
    known = len(found) - agree - len(off)
    tail = f"; {known} differ for a known reason" if known else ""
    lines += ["", f"{agree} of {len(found)} figures agree within {found[0].tolerance:g}{tail}"]
    return "\n".join(lines)


def differing(found: Sequence[Figure]) -> list[Figure]:
    """Returns the figures that differ without a known reason, including missing ones."""
    return [figure for figure in found if (not figure.within or math.isnan(figure.ours)) and not figure.differs]


def records(found: Sequence[Figure]) -> list[dict[str, object]]:
    """Returns the figures as dicts, with `difference` and `within`."""
    return [{**asdict(figure), "difference": figure.difference, "within": figure.within} for figure in found]
