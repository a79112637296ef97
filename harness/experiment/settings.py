"""Settings of an experiment besides its trials: how they are compared, and the limits of the regression gate."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.core.errors import ConfigError

CLUSTERS = ("documents", "queries")


@dataclass(frozen=True)
class Compare:
    """Settings of the comparison: primary metric, params of the baseline trial, and other values shown for each trial.

    With several baselines (a list in the file), `baseline` is the first, and `further` are the others.

    `margin` is the smallest difference that matters in practice (0: any), `effect` the difference that "queries needed"
    is computed for. `clusters` is `documents` to generalize to new documents and their questions, or `queries` to
    generalize to new questions on the same documents. Raises ConfigError for an invalid value.
    """

    baseline: Mapping[str, str] = field(default_factory=dict)
    on: str | None = None
    show: tuple[str, ...] = ()
    margin: float = 0.0
    effect: float = 0.03
    clusters: str = "documents"
    further: tuple[Mapping[str, str], ...] = ()

    @property
    def baselines(self) -> tuple[Mapping[str, str], ...]:
        """The params of each baseline; those of the first may be empty, for the first trial."""
        return (self.baseline, *self.further)

    def __post_init__(self) -> None:
        for name, minimum in (("margin", 0.0), ("effect", 1e-9)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not minimum <= value <= 1:
                raise ConfigError(f"compare.{name}: expected a difference of at most 1, such as 0.02, got {value!r}")
        if self.clusters not in CLUSTERS:
            raise ConfigError(f"compare.clusters: expected {' or '.join(CLUSTERS)}, got {self.clusters!r}")


@dataclass(frozen=True)
class Gate:
    """How far means may fall below the accepted baseline before the regression gate calls a trial worse.

    `margins` are by metric; empty means 0.02 for the primary metric. `alpha` is the probability that the gate calls any
    trial worse on any metric if nothing has changed. Raises ConfigError for an invalid value.
    """

    margins: Mapping[str, float] = field(default_factory=dict)
    alpha: float = 0.05

    def __post_init__(self) -> None:
        for metric, margin in self.margins.items():
            if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0 <= margin < math.inf:
                raise ConfigError(f"gate.margins.{metric}: expected a difference such as 0.02, got {margin!r}")
        if isinstance(self.alpha, bool) or not isinstance(self.alpha, int | float) or not 0 < self.alpha < 0.5:
            raise ConfigError(f"gate.alpha: expected a probability such as 0.05, got {self.alpha!r}")
