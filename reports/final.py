"""The chosen trial and the baseline: estimates on validation, and results on the locked query set."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.core.errors import HarnessError
from harness.running.launch_history import final_of, stored_launch
from harness.running.launch_result import Launch
from harness.running.locked_set import test_set_accesses
from reports.compare import compare
from reports.comparison import Comparison
from reports.numbers import probability


@dataclass(frozen=True)
class FinalScore:
    """A trial's mean on validation, corrected for selection, and on the locked set, each with a 95 % interval.

    `corrected` is NaN for a trial that does not have the highest mean on validation.
    """

    name: str
    chosen: bool
    validation: float
    validation_low: float
    validation_high: float
    corrected: float
    corrected_low: float
    corrected_high: float
    test: float
    test_low: float
    test_high: float


@dataclass(frozen=True)
class Final:
    """The finalists on one metric; `test` compares them on the locked set.

    `test_set_accesses` counts the accesses to the locked set from this store so far.
    """

    metric: str
    scores: Sequence[FinalScore]
    test: Comparison
    test_set_accesses: int


def final_scores(launch: Launch, on: str | None = None) -> Final | None:
    """Returns the finalists of an experiment, given its launch on validation or on the locked set.

    None if the locked set has not been used for the trial chosen from this grid, or if a launch is missing.
    """
    if launch.session is None:
        return None
    final = launch if launch.session.final else final_of(launch)
    if final is None or final.session is None or not final.experiment.chosen:
        return None
    try:
        grid = stored_launch(launch.experiment.name, store=launch.session.store) if launch.session.final else launch
    except HarnessError:
        return None  # a trial may be chosen by hand, without a validation launch
    before, after = compare(grid, on=on), compare(final, on=on)
    rows = {row.name: row for row in before.rows}
    if any(row.name not in rows for row in after.rows):
        return None  # the grid has changed since
    scores = []
    for row in after.rows:
        own, best = rows[row.name], before.best
        corrected = (best.corrected, best.low, best.high) if best.name == row.name else (math.nan,) * 3
        validation = own.mean, own.low, own.high
        chosen = row.name == final.experiment.chosen
        scores.append(FinalScore(row.name, chosen, *validation, *corrected, row.mean, row.low, row.high))
    return Final(after.metric, scores, after, len(test_set_accesses(final.session)))


def lines(final: Final) -> list[str]:
    """Returns the finalists as text, a line each, and the conclusion."""
    lines = [f"{final.metric} on the locked query set, accessed {times(final.test_set_accesses)}:"]
    for score in final.scores:
        parts = [f"validation {_with_interval(score.validation, score.validation_low, score.validation_high)}"]
        if not math.isnan(score.corrected):
            corrected = _with_interval(score.corrected, score.corrected_low, score.corrected_high)
            parts.append(f"corrected for selection {corrected}")
        parts.append(f"test {_with_interval(score.test, score.test_low, score.test_high)}")
        lines.append(f"  {'chosen' if score.chosen else 'baseline'} '{score.name}': {', '.join(parts)}")
    return [*lines, conclusion(final)]


def conclusion(final: Final) -> str:
    """Returns the result on the locked query set in a sentence."""
    where = f"On the locked query set ({final.test.queries} queries, accessed {times(final.test_set_accesses)})"
    rows = [row for row in final.test.rows if row.verdict != "baseline"]
    if not rows:
        return f"{where}, there is nothing to compare: the chosen trial is the baseline."
    (row,) = rows
    word = "cannot be distinguished from" if row.verdict == "cannot tell" else f"is {row.verdict} than"
    bounds = f" (95 % CI {row.difference_low:+.3f} … {row.difference_high:+.3f})"
    numbers = f"{row.difference:+.3f}{'' if math.isnan(row.difference_low) else bounds}"
    p = "" if math.isnan(row.p) else f", p {'' if row.p < 0.001 else '= '}{probability(row.p)}"
    return f"{where}, the chosen trial '{row.name}' {word} the baseline: {final.metric} {numbers}{p}."


def times(count: int) -> str:
    """Returns a count in words: `once`, `3 times`."""
    return "once" if count == 1 else f"{count} times"


def _with_interval(value: float, low: float, high: float) -> str:
    if math.isnan(value):
        return "withheld"
    return f"{value:.3f}" + ("" if math.isnan(low) else f" ({low:.3f} … {high:.3f})")
