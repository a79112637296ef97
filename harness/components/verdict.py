"""Scores computed from judgments: a value if no judgment is missing, and bounds that hold in any case."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from harness.llm.answers import Failure, Judgment


class Score(NamedTuple):
    """One measure of one query. `value` is None if a judgment that it needs is missing.

    `low` and `high` are bounds for any outcome of the missing judgments (Manski, Partial Identification of
    Probability Distributions, 2003); they equal `value` if none is missing.
    """

    value: float | None
    low: float
    high: float

    @classmethod
    def exactly(cls, value: float) -> "Score":
        """A score without missing judgments."""
        return cls(value, value, value)

    @classmethod
    def between(cls, low: float, high: float, *, complete: bool) -> "Score":
        """A score within bounds; `complete` says that no judgment is missing, so that `low` is the value."""
        return cls(low if complete else None, low, high)

    @classmethod
    def mean(cls, scores: Sequence["Score"]) -> "Score":
        """The mean over repeats; it has a value only if all of them have one."""
        low = math.fsum(score.low for score in scores) / len(scores)
        high = math.fsum(score.high for score in scores) / len(scores)
        return cls.between(low, high, complete=all(score.value is not None for score in scores))


class Finding(NamedTuple):
    """The judgments of one passage, given by its rank from 1, or of one needed item, given by its text."""

    rank: int | None
    item: str
    judgments: tuple[Judgment, ...]

    @property
    def failures(self) -> list[Failure]:
        """The judgments that failed."""
        return [judgment for judgment in self.judgments if isinstance(judgment, Failure)]


class Verdict(NamedTuple):
    """A judge's result for one query: a score per measure, None if the query cannot have one, and the findings."""

    scores: Mapping[str, Score | None]
    findings: tuple[Finding, ...] = ()
    flags: tuple[str, ...] = ()


def fraction_relevant(relevant: Sequence[bool | None], of: int) -> Score:
    """The number of relevant items divided by `of`; None marks an item whose relevance is unknown."""
    sure, open_ = sum(known is True for known in relevant), sum(known is None for known in relevant)
    return Score.between(sure / of, (sure + open_) / of, complete=not open_)


def average_precision(relevant: Sequence[bool | None], of: int | None = None) -> Score:
    """The sum of the precisions at the ranks of relevant passages, divided by their number or by `of`.

    Divided by their number, it is what RAG toolkits call context precision: it ignores irrelevant passages after the
    last relevant one. With `of` = k these count too. It is 0 if no passage is relevant.

    >>> average_precision([True, False, False, False]).value, average_precision([True, False, False, False], of=4).value
    (1.0, 0.25)
    """
    low, high = _extreme(relevant, of, min), _extreme(relevant, of, max)
    return Score.between(low, high, complete=None not in relevant)


def _extreme(relevant: Sequence[bool | None], of: int | None, best: Callable[[float, float], float]) -> float:
    """The minimum or maximum average precision over all values of the unknown labels.

    Dynamic programming over ranks: for each number of relevant passages so far, the extreme sum of precisions.
    """
    sums: dict[int, float] = {0: 0.0}
    for rank, known in enumerate(relevant, 1):
        grown: dict[int, float] = {}
        for count, total in sums.items():
            for hit in (True, False) if known is None else (known,):
                reached, value = count + hit, total + (count + 1) / rank if hit else total
                grown[reached] = best(grown[reached], value) if reached in grown else value
        sums = grown
    values = [total / (of or count) if count else 0.0 for count, total in sums.items()]
    result = values[0]
    for value in values[1:]:
        result = best(result, value)
    return result
