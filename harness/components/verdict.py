"""What judgments come to: a value only where all of them are there, and bounds that hold whatever the others are."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from harness.llm.answers import Failure, Judgment


class Score(NamedTuple):
    """One measure of one query. `value` is None unless every judgment it rests on is there.

    `low` and `high` bound it whatever the missing judgments would have been (Manski, Partial Identification of
    Probability Distributions, 2003); they equal `value` where none is missing.
    """

    value: float | None
    low: float
    high: float

    @classmethod
    def exactly(cls, value: float) -> "Score":
        return cls(value, value, value)

    @classmethod
    def between(cls, low: float, high: float, *, complete: bool) -> "Score":
        return cls(low if complete else None, low, high)

    @classmethod
    def mean(cls, scores: Sequence["Score"]) -> "Score":
        """The mean over repeats; it has a value only where all of them have."""
        low = math.fsum(score.low for score in scores) / len(scores)
        high = math.fsum(score.high for score in scores) / len(scores)
        return cls.between(low, high, complete=all(score.value is not None for score in scores))


class Finding(NamedTuple):
    """What was judged about one thing: a passage, by its rank from 1, or an item of what is needed, by its text."""

    rank: int | None
    item: str
    judgments: tuple[Judgment, ...]

    @property
    def failures(self) -> list[Failure]:
        return [judgment for judgment in self.judgments if isinstance(judgment, Failure)]


class Verdict(NamedTuple):
    """All of a judge about one query: a score per measure, None where the query cannot have one, and the findings."""

    scores: Mapping[str, Score | None]
    findings: tuple[Finding, ...] = ()
    flags: tuple[str, ...] = ()


def share(relevant: Sequence[bool | None], of: int) -> Score:
    """The relevant among `of`; None stands for one that is not known."""
    sure, open_ = sum(known is True for known in relevant), sum(known is None for known in relevant)
    return Score.between(sure / of, (sure + open_) / of, complete=not open_)


def average_precision(relevant: Sequence[bool | None], of: int | None = None) -> Score:
    """Mean over the relevant of the precision at their rank, divided by their number or by `of`.

    Divided by their number it is what RAG toolkits call context precision: blind to irrelevant passages behind the last
    relevant one. `of` = k counts those too. No relevant passage gives 0.

    >>> average_precision([True, False, False, False]).value, average_precision([True, False, False, False], of=4).value
    (1.0, 0.25)
    """
    low, high = _extreme(relevant, of, min), _extreme(relevant, of, max)
    return Score.between(low, high, complete=None not in relevant)


def _extreme(relevant: Sequence[bool | None], of: int | None, best: Callable[[float, float], float]) -> float:
    """The least or greatest average precision over all ways to fill in what is not known.

    Labels seen so far matter only through how many are relevant: a table of sums by that number, rank by rank.
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
