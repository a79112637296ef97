"""What a judge did in a launch: calls, answers, failures and costs, as plain records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.llm import Estimate, Spend


@dataclass(frozen=True)
class JudgeSummary:
    """What a judge did in a launch: calls one by one, pooled over all trials, and not yet stored; then how it went.

    `estimate` is for what was not stored. `failures` counts distinct judgments by kind, `example` tells of one;
    `models` those by the model that gave them, as the server named it; `flips` is the share of repeated judgments
    that do not agree (None without repeats).
    """

    judge: str
    model: str
    naive: int = 0
    pooled: int = 0
    missing: int = 0
    judgments: int = 0
    estimate: Estimate = field(default_factory=Estimate)
    failures: Mapping[str, int] = field(default_factory=dict)
    example: str = ""
    models: Mapping[str, int] = field(default_factory=dict)
    flips: float | None = None
    paid: float = 0.0
    """Dollars that the judgments in use have cost, whenever they were asked for."""
    unpriced: int = 0
    """Calls among them whose cost is not known."""
    suspicious: int = 0
    empty: int = 0
    calibration: str = ""

    @property
    def cost(self) -> str:
        """One line on what asking takes, told before the first call."""
        calls = f"{self.naive} calls trial by trial -> {self.pooled} pooled -> {self.missing} not stored"
        return f"{self.judge} ({self.model}): {calls}; {self.estimate}"


@dataclass(frozen=True)
class JudgingReport:
    """What judging a launch took: judge by judge, and the use made of models by all that asked one."""

    judges: Sequence[JudgeSummary] = ()
    spend: Spend = field(default_factory=Spend)
