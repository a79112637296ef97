"""Summaries of judging in a launch: calls, judgments, failures and costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.llm import Estimate, Spend
from harness.llm.answers import FailureKind


@dataclass(frozen=True)
class JudgeSummary:
    """A judge's work in a launch: its calls before asking, then the outcome.

    `naive` is the number of calls if each trial were judged separately, `pooled` over all trials together, `missing`
    those not stored; `estimate` is their expected cost. `judgments` is the number of distinct tasks. `failures` counts
    failed judgments by kind, and `example` describes one. `models` counts judgments by the model that the server named.
    `flips` is the fraction of repeated judgments that disagree (None without repeats). `suspicious` counts judgments
    flagged so, `empty` the queries of all trials without passages. `calibration` is the agreement with people, as text.
    """

    judge: str
    model: str
    naive: int = 0
    pooled: int = 0
    missing: int = 0
    judgments: int = 0
    estimate: Estimate = field(default_factory=Estimate)
    failures: Mapping[FailureKind, int] = field(default_factory=dict)
    example: str = ""
    models: Mapping[str, int] = field(default_factory=dict)
    flips: float | None = None
    paid: float = 0.0
    """Dollars paid for the judgments in use, in this launch or earlier."""
    unpriced: int = 0
    """The number of their calls whose cost is not known."""
    suspicious: int = 0
    empty: int = 0
    calibration: str = ""

    @property
    def cost(self) -> str:
        """One line on the calls and their expected cost, shown before the first call."""
        calls = f"{self.naive} calls trial by trial -> {self.pooled} pooled -> {self.missing} not stored"
        return f"{self.judge} ({self.model}): {calls}; {self.estimate}"


@dataclass(frozen=True)
class JudgingReport:
    """The summaries of all judges, and what the launch spent on models, judges included."""

    judges: Sequence[JudgeSummary] = ()
    spend: Spend = field(default_factory=Spend)
