"""The answer to an experiment's question in two sentences, with no word that the statistics do not bear."""

import math

from reports.comparison import Comparison
from reports.comparison_row import Row


def answer(comparison: Comparison) -> str:
    """What the comparison says, and how sure it is: two sentences."""
    others = [row for row in comparison.rows if row.verdict != "baseline"]
    if not others:
        (row,) = comparison.rows
        return f"There is one trial, '{row.name}', with {_mean(comparison, row)}. There is nothing to compare it with."
    return f"{_first(comparison, others)} {_second(comparison, others)}"


def _first(comparison: Comparison, others: list[Row]) -> str:
    on = f"On {comparison.queries} {'synthetic ' if comparison.synthetic else ''}queries"
    better = sorted((row for row in others if row.verdict == "better"), key=lambda row: -row.difference)
    worse = [row for row in others if row.verdict == "worse"]
    baseline = f"the baseline '{comparison.baseline}'"
    if better:
        row = better[0]
        message = f"{on}, '{row.name}' is better than {baseline}: {comparison.metric} {_difference(row)}"
        if len(better) > 1:
            message += (
                f", and {_count(len(better) - 1, 'other trial')} {'is' if len(better) == 2 else 'are'} better too"
            )
        return f"{message}{_matter(comparison, row)}."
    if worse:
        message = f"{on}, no trial is better than {baseline} in {comparison.metric}, and {_count(len(worse), 'trial')}"
        return f"{message} {'is' if len(worse) == 1 else 'are'} worse."
    return f"{on}, no trial can be told apart from {baseline} in {comparison.metric}."


def _matter(comparison: Comparison, row: Row) -> str:
    if not comparison.margin:
        return ""
    words = {"yes": "more than", "no": "less than", "cannot tell": "perhaps less than"}
    return f", {words[row.matters]} the margin of {comparison.margin:g}"


def _second(comparison: Comparison, others: list[Row]) -> str:
    best = comparison.best
    if math.isnan(best.mean):
        return "Too many judgments are missing to say which trial has the highest mean."
    sure = any(row.mean_min < row.mean_max for row in comparison.rows)
    message = f"The highest mean{' that is sure, whatever is missing' if sure else ''}, {best.mean:.3f}"
    if not math.isnan(best.corrected) and round(best.corrected, 3) != round(best.mean, 3):
        message += f" ({best.corrected:.3f} once corrected for the choice)"
    message += f", is that of '{best.name}'"
    peers = len(best.not_separable) - 1
    message += (
        f", from which {_count(peers, 'other trial')} cannot be separated" if peers else ", and no other reaches it"
    )
    open_ = [row.needed for row in others if not math.isnan(row.needed)]
    if open_ and not any(row.verdict == "better" for row in others):
        message += f"; a difference of {comparison.effect:g} would take {_range(open_)} queries like these to see"
    return f"{message}."


def _mean(comparison: Comparison, row: Row) -> str:
    value = "withheld" if math.isnan(row.mean) else f"{row.mean:.3f}"
    interval = "" if math.isnan(row.low) else f" ({row.low:.3f} … {row.high:.3f})"
    return f"{comparison.metric} {value}{interval}"


def _difference(row: Row) -> str:
    bounds = "" if math.isnan(row.difference_low) else f" ({row.difference_low:+.3f} … {row.difference_high:+.3f})"
    return f"{row.difference:+.3f}{bounds}, p {_p(row.p)}"


def _p(value: float) -> str:
    return "under .001" if value < 0.001 else f"{value:.3f}".lstrip("0")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _range(numbers: list[float]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
