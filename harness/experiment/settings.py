"""What an experiment says besides its trials: how they are compared, and what the regression gate lets pass."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.core.errors import ConfigError

CLUSTERS = ("documents", "queries")


@dataclass(frozen=True)
class Compare:
    """What the comparison is about: a metric, the params of the baseline trial, and what else to show of each trial.

    `margin` is the difference that matters in practice (0: any), `effect` the one that "queries needed" is about.
    `clusters` are `documents` where the claim is about further documents and their questions, or `queries` where it is
    about further questions on these documents.
    """

    baseline: Mapping[str, str] = field(default_factory=dict)
    on: str | None = None
    show: tuple[str, ...] = ()
    margin: float = 0.0
    effect: float = 0.03
    clusters: str = "documents"

    def __post_init__(self) -> None:
        for name, least in (("margin", 0.0), ("effect", 1e-9)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
                raise ConfigError(f"compare.{name}: expected a difference such as 0.02, got {value!r}")
        if self.clusters not in CLUSTERS:
            raise ConfigError(f"compare.clusters: expected {' or '.join(CLUSTERS)}, got {self.clusters!r}")


@dataclass(frozen=True)
class Gate:
    """How far means may fall below the accepted baseline before the regression gate calls it worse.

    `margins` by metric, empty for 0.02 of the metric that trials are compared on. `alpha` is the chance that the gate
    calls any trial worse on any metric where nothing has changed.
    """

    margins: Mapping[str, float] = field(default_factory=dict)
    alpha: float = 0.05

    def __post_init__(self) -> None:
        for metric, margin in self.margins.items():
            if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0 <= margin < math.inf:
                raise ConfigError(f"gate.margins.{metric}: expected a difference such as 0.02, got {margin!r}")
        if isinstance(self.alpha, bool) or not isinstance(self.alpha, int | float) or not 0 < self.alpha < 0.5:
            raise ConfigError(f"gate.alpha: expected a chance such as 0.05, got {self.alpha!r}")
