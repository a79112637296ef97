"""One trial of a comparison: its numbers, and the cells of its row in a table."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from reports.numbers import interval, outcome_words, probability

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


HEAD = (
    *("trial", "mean", "95 % interval", "difference", "95 % interval", "p", "verdict", "needed", "P(best)"),
    *("lost mostly", "tokens"),
)


def cells(row: Row) -> tuple[str, ...]:
    """Returns one row of the table as text, in the order of `HEAD`."""
    own = row.verdict == "baseline"
    return (
        row.name,
        mean_in_bounds(row),
        interval(row.low, row.high, ".3f"),
        "" if own or math.isnan(row.difference) else f"{row.difference:+.3f}",
        "" if own else difference_interval(row),
        "" if own or math.isnan(row.p) else probability(row.p),
        row.verdict,
        "" if math.isnan(row.needed) else f"{row.needed:,.0f}",
        probability(row.p_best),
        _loss(row),
        f"{row.context_tokens:.0f}",
    )


def difference_interval(row: Row) -> str:
    """Returns the interval of the difference to the baseline, or the reason why there is none."""
    return row.no_interval or interval(row.difference_low, row.difference_high, "+.3f")


def mean_in_bounds(row: Row) -> str:
    """Returns the mean, and if judgments are missing, its bounds for all possible values of them.

    `0.412`, `0.412 [0.402 … 0.427]`, `withheld [0.310 … 0.610]`.
    """
    mean = "withheld" if math.isnan(row.mean) else f"{row.mean:.3f}"
    return mean if row.mean_min == row.mean_max else f"{mean} [{row.mean_min:.3f} … {row.mean_max:.3f}]"


def _loss(row: Row) -> str:
    """The most frequent first cause of lost evidence, with its percentage of all evidence items."""
    total = sum(row.losses.values())
    lost = {outcome: count for outcome, count in row.losses.items() if outcome != "found" and count}
    if not lost:
        return "nothing"
    outcome = max(lost, key=lambda name: (lost[name], name))
    return f"{outcome_words(outcome)} {100 * lost[outcome] / total:.0f} %"
