"""The answer to an experiment's question in sentences that claim no more than the statistics support."""

import math
from collections import Counter
from dataclasses import replace

from harness.core.plurals import plural
from reports.comparison import Against, Comparison
from reports.comparison_row import Row


def answer(comparison: Comparison) -> str:
    """Returns the result of a comparison and its uncertainty in two sentences, and one for each further baseline."""
    if comparison.partial:
        whole = replace(comparison, partial="")
        return f"Partial run, {comparison.partial}: {answer(whole)}"
    others = [row for row in comparison.rows if row.verdict != "baseline"]
    if not others:
        (row,) = comparison.rows
        return f"There is one trial, '{row.name}', with {_mean(comparison, row)}. There is nothing to compare it with."
    return " ".join([_first(comparison, others), *map(_further, comparison.against), _second(comparison, others)])


def _further(other: Against) -> str:
    """What is said of a further baseline."""
    counts = Counter(row.verdict for row in other.rows)
    parts = [
        f"{counts[verdict]} {'is' if counts[verdict] == 1 else 'are'} {verdict}"
        for verdict in ("better", "worse")
        if counts[verdict]
    ]
    undecided = counts["cannot tell"]
    if undecided == len(other.rows) - 1:
        return f"No trial can be distinguished from the baseline '{other.baseline}'."
    parts += [f"{undecided} cannot be distinguished from it"] if undecided else []
    return (
        f"Compared with the baseline '{other.baseline}', of {plural(len(other.rows) - 1, 'trial')}, {', '.join(parts)}."
    )


def _first(comparison: Comparison, others: list[Row]) -> str:
    on = f"On {plural(comparison.queries, 'synthetic query' if comparison.synthetic else 'query')}"
    better = sorted((row for row in others if row.verdict == "better"), key=lambda row: -row.difference)
    worse = [row for row in others if row.verdict == "worse"]
    baseline = f"the baseline '{comparison.baseline}'"
    if better:
        row = better[0]
        message = f"{on}, '{row.name}' is better than {baseline}: {comparison.metric} {_difference(row)}"
        message += _matter(comparison, row)
        if len(better) > 1:
            message += f"; {_count(len(better) - 1, 'other trial')} {'is' if len(better) == 2 else 'are'} also better"
        return f"{message}."
    if worse:
        message = f"{on}, no trial is better than {baseline} in {comparison.metric}, and {_count(len(worse), 'trial')}"
        return f"{message} {'is' if len(worse) == 1 else 'are'} worse."
    return f"{on}, no trial can be distinguished from {baseline} in {comparison.metric}."


def _matter(comparison: Comparison, row: Row) -> str:
    if not comparison.margin:
        return ""
    words = {"yes": "is more than", "no": "is less than", "cannot tell": "may be less than"}
    return f", which {words[row.matters]} the margin of {comparison.margin:g}"


def _second(comparison: Comparison, others: list[Row]) -> str:
    best = comparison.best
    if math.isnan(best.mean):
        return "Too many judgments are missing to say which trial has the highest mean."
    message, mean = f"'{best.name}'{_sharing(comparison)} the highest mean", f"{best.mean:.3f}"
    if any(row.mean_min < row.mean_max for row in comparison.rows):
        message = f"With missing values counted at their worst, {message}"
        mean += " over complete queries"
    if not math.isnan(best.corrected) and round(best.corrected, 3) != round(best.mean, 3):
        mean += f", {best.corrected:.3f} corrected for selection"
    peers = len(best.not_separable) - 1
    rest = (
        f"{_count(peers, 'other trial')} cannot be separated from it"
        if peers
        else "all others can be separated from it"
    )
    message += f" ({mean}); {rest}"
    needed = [row.needed for row in others if not math.isnan(row.needed)]
    if needed and not any(row.verdict == "better" for row in others):
        message += f"; detecting a difference of {comparison.effect:g} would take {_range(needed)} similar queries"
    return f"{message}."


def _sharing(comparison: Comparison) -> str:
    count = comparison.equally_good
    return f" and {_count(count, 'other trial')} share" if count else " has"


def _mean(comparison: Comparison, row: Row) -> str:
    value = "withheld" if math.isnan(row.mean) else f"{row.mean:.3f}"
    interval = "" if math.isnan(row.low) else f" (95 % CI {row.low:.3f} … {row.high:.3f})"
    return f"{comparison.metric} {value}{interval}"


def _difference(row: Row) -> str:
    interval = f"95 % CI {row.difference_low:+.3f} … {row.difference_high:+.3f}, "
    return f"{row.difference:+.3f} ({'' if math.isnan(row.difference_low) else interval}adjusted p {_p(row.p)})"


def _p(value: float) -> str:
    return "< .001" if value < 0.001 else f"= {f'{value:.3f}'.lstrip('0')}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _range(numbers: list[float]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
