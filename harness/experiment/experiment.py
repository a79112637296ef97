"""An experiment: a base trial, a grid over it, and what to compare. Written in YAML or Python."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.components.roles import judge_measures
from harness.core.errors import ConfigError
from harness.evaluation.metrics import is_metric
from harness.experiment.grid import with_axis
from harness.experiment.published import Published
from harness.experiment.reader_price import Reader
from harness.experiment.settings import Compare, Gate
from harness.experiment.trial import Trial, TrialChecker
from harness.experiment.trial_names import SLOTS
from harness.experiment.yaml_lines import with_lines
from harness.storage.digest import digest

MOST_TRIALS = 20_000
"""Max trials in one grid: more would take minutes to list, and nobody could compare them."""


@dataclass(frozen=True)
class TrialSet:
    """Trials that do not come from a grid: those of a stored launch, or the finalists of an experiment.

    `names` are their names, in order; `chosen` is the name of the trial that validation chose among the finalists.
    """

    trials: tuple[Trial, ...]
    names: tuple[str, ...] = ()
    chosen: str = ""


TRACES = 200
"""How many queries of a trial have traces in MLflow, if the experiment does not say."""


@dataclass(frozen=True)
class Experiment:
    """A base trial and a grid: a mapping is the product of its axes, a list of mappings the union of their products.

    An axis is a slot (`chunker`, whose values are components) or one setting (`selector.mmr.k`). `base_dir` is the
    folder where the search for data sets and custom components starts.
    """

    name: str
    base: Trial
    grid: Sequence[Mapping[str, Sequence[Any]]] | Mapping[str, Sequence[Any]] = ()
    question: str = ""
    compare: Compare = field(default_factory=Compare)
    base_dir: Path = field(default_factory=Path.cwd)
    source: str = "python"
    trial_set: TrialSet | None = None
    """The trials, if they are given directly instead of a grid."""
    reader: Reader | None = None
    gate: Gate = field(default_factory=Gate)
    published: Published | None = None
    notes: str = ""
    """Notes in Markdown, logged with each launch."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Tags, logged with each launch and its trials."""
    traces: int = TRACES
    """The most queries of the best trial and of the baseline that are logged to MLflow as traces."""
    partial: str = ""
    """What part of an experiment this is, in words; empty for a whole one. See `harness.experiment.part`."""

    def __post_init__(self) -> None:
        # A path may be given as text.
        object.__setattr__(self, "base_dir", Path(self.base_dir))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The requested metrics, including those of the comparison, the regression gate and the published figures.

        Without the measures of judges.
        """
        held = self.published.metrics if self.published else ()
        named = (self.compare.on, *self.compare.show, *self.gate.margins, *held)
        wanted = (*self.base.metrics, *(name for name in named if name and is_metric(name, self.own_metrics)))
        return tuple(dict.fromkeys(name for name in wanted if name not in self.judged))

    @property
    def own_metrics(self) -> tuple[str, ...]:
        """The names of the researcher's own measures."""
        return tuple(metric.name() for metric in self.base.own_metrics)

    @property
    def chosen(self) -> str:
        """The name of the trial that validation chose, if these are the finalists; else empty."""
        return self.trial_set.chosen if self.trial_set else ""

    @property
    def judged(self) -> tuple[str, ...]:
        """The measures of the judges."""
        return tuple(judge_measures(self.base.judges))

    def trials(self) -> list[Trial]:
        """The distinct trials of the grid, in order. Raises ConfigError if one is invalid or there are too many."""
        with with_lines(self.base_dir / self.source):
            return self._expanded()

    def _expanded(self) -> list[Trial]:
        if any(":" in name for name in self.base.metrics):
            message = "name your own metrics by their names, and give the components: own_metrics=(NuggetRecall(),)"
            raise ConfigError(f"{self.source}: metrics: {message}")
        products = [self.grid] if isinstance(self.grid, Mapping) else list(self.grid)
        size = sum(math.prod(len(values) for values in product.values()) for product in products)
        if size > MOST_TRIALS:
            raise ConfigError(f"{self.source}: grid: {size:,} combinations; the maximum is {MOST_TRIALS:,}")
        expanded: Iterable[Trial] = (trial for product in products or [{}] for trial in self._product(product))
        if self.trial_set:
            expanded = self.trial_set.trials
        where = f"{self.source}: grid" if products and products != [{}] else f"{self.source}:"
        checker = TrialChecker(where, self.base_dir)
        checker.parts(self.base, "judges")  # before they are asked for their measures
        metrics = self.metrics
        distinct: dict[str, Trial] = {}
        for trial in expanded:
            made = checker.checked(replace(trial, metrics=metrics))
            distinct.setdefault(digest(made.identity()), made)
        return list(distinct.values())

    def _product(self, axes: Mapping[str, Sequence[Any]]) -> Iterable[Trial]:
        # Slots first: a dotted path refers to the component that the product has put into the slot.
        order = sorted(axes, key=lambda axis: axis not in SLOTS)
        for values in itertools.product(*(axes[axis] for axis in order)):
            trial = self.base
            for axis, value in zip(order, values, strict=True):
                trial = with_axis(trial, axis, value, where=f"{self.source}: grid.{axis}")
            yield trial
