"""Differences of trials to baselines: tested as one family, so that any wrong verdict has a probability of 5 %."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harness.evaluation.stats import (
    ALPHA,
    TESTABLE_CLUSTERS,
    Sums,
    cluster_sums,
    holm,
    normal_critical,
    paired_differences,
    queries_needed,
)
from harness.evaluation.stats.clusters import standard_errors
from harness.experiment.settings import Compare
from harness.running.primary_metric import Scores
from reports.comparison_row import Matters, Verdict


class Difference(NamedTuple):
    """One trial's difference to the baseline; the fields are those of `Row`."""

    difference_low: float = 0.0
    difference_high: float = 0.0
    alone_low: float = 0.0
    alone_high: float = 0.0
    p: float = math.nan
    p_alone: float = math.nan
    p_holm: float = math.nan
    verdict: Verdict = "baseline"
    no_interval: str = ""
    matters: Matters = ""
    needed: float = math.nan


def differences(baselines: Sequence[int], scores: Scores, settings: Compare) -> list[list[Difference]]:
    """Returns, for each of the baselines, given by number, every trial's difference to it: one family of hypotheses."""
    pairs = [(n, at) for at in baselines for n in range(len(scores.low)) if n != at]
    trials, bases = np.array(pairs, np.int64).reshape(-1, 2).T
    worst, best = scores.low[trials] - scores.high[bases], scores.high[trials] - scores.low[bases]
    low_sums, sizes = cluster_sums(worst, scores.clusters)
    high_sums, _ = cluster_sums(best, scores.clusters)
    tested = ~(scores.withheld[trials] | scores.withheld[bases])
    family = paired_differences(Sums(low_sums, high_sums, sizes), seed=scores.seed, tested=tested, level=1 - ALPHA)
    middle = (low_sums + high_sums) / 2
    critical = normal_critical(middle[tested], sizes, seed=scores.seed, level=1 - ALPHA)
    needed = queries_needed(standard_errors(middle, sizes), scores.queries, settings.effect, critical=critical)
    p_holm = holm(family.p)
    made = {at: [Difference()] * len(scores.low) for at in baselines}
    for n, (trial, at) in enumerate(pairs):
        if len(sizes) < TESTABLE_CLUSTERS or not tested[n]:
            why = "too few clusters" if tested[n] else "withheld"
            made[at][trial] = _refused(why, settings)
            continue
        low, high = _within(float(family.low[n]), float(family.high[n]))
        verdict = _verdict(low, high)
        made[at][trial] = Difference(
            low,
            high,
            *_within(float(family.alone_low[n]), float(family.alone_high[n])),
            float(family.adjusted[n]),
            float(family.p[n]),
            float(p_holm[n]),
            verdict,
            _unbounded(bool((low_sums[n] < high_sums[n]).any())) if math.isnan(low) else "",
            _matters(low, high, settings.margin),
            float(needed[n]) if verdict == "cannot tell" and math.isfinite(needed[n]) else math.nan,
        )
    return [made[at] for at in baselines]


def _unbounded(missing: bool) -> str:
    """The reason why a difference has no bounds."""
    return "missing values" if missing else "too few clusters"


def _refused(why: str, settings: Compare) -> Difference:
    """A difference without a test."""
    nan, matters = math.nan, _matters(math.nan, math.nan, settings.margin)
    return Difference(nan, nan, nan, nan, nan, nan, nan, "cannot tell", why, matters)


def _within(low: float, high: float) -> tuple[float, float]:
    """The bounds of an interval, NaN if there are none. Measures are in 0..1, so differences are in -1..1."""
    return (max(low, -1.0), min(high, 1.0)) if math.isfinite(low + high) else (math.nan, math.nan)


def _verdict(low: float, high: float) -> Verdict:
    """The verdict of an interval: better or worse only if it excludes 0."""
    return "better" if low > 0 else "worse" if high < 0 else "cannot tell"


def _matters(low: float, high: float, margin: float) -> Matters:
    if not margin:
        return ""
    if low > margin or high < -margin:
        return "yes"
    return "no" if -margin <= low and high <= margin else "cannot tell"
