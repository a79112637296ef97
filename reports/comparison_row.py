"""One trial of a comparison, in numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from harness.evaluation.results import TrialResult

Verdict = Literal["baseline", "better", "worse", "cannot tell"]

Matters = Literal["", "yes", "no", "cannot tell"]


@dataclass(frozen=True)
class Row:
    """One trial: its mean, and its paired difference to the baseline. Bounds are those of 95 % intervals, NaN if none.

    `mean_min` and `mean_max` bound the mean over all queries for all possible values of missing judgments; if none is
    missing, both are the mean. `difference_low` and `difference_high` form a simultaneous interval over all trials,
    `alone_low` and `alone_high` an individual one. The `verdict` follows from the simultaneous interval; `no_interval`
    is the reason if there is none. `p` is adjusted for multiple comparisons, and at most .05 exactly if that interval
    excludes 0; `p_alone` is unadjusted, `p_holm` adjusted by Holm's method. `matters` says whether the difference
    exceeds the experiment's margin (empty without a margin). `needed` is the number of similar queries that would
    detect a difference of the experiment's `effect`. `p_best` is the fraction of resamples in which the trial is best,
    `may_be_best` whether it cannot be separated from the best. `losses` counts evidence items by evidence outcome,
    `context_tokens` is the mean number of tokens of a selection.
    """

    name: str
    mean: float
    mean_min: float
    mean_max: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float
    alone_low: float
    alone_high: float
    p: float
    p_alone: float
    p_holm: float
    verdict: Verdict
    no_interval: str
    matters: Matters
    needed: float
    p_best: float
    may_be_best: bool
    losses: Mapping[str, int]
    context_tokens: float
    complete: int
    """Queries with a value; fewer than those compared if a judge failed. Intervals then cover all possible values."""
    result: TrialResult | None = field(default=None, repr=False, compare=False)
    """Everything else that is known of the trial."""

    @property
    def is_baseline(self) -> bool:
        """Whether the trial is the baseline."""
        return self.verdict == "baseline"
