"""What makes a judge's mean uncertain: the queries, the judge's moods, or the order it sees passages in."""

from typing import NamedTuple

import numpy as np

from harness.evaluation.stats.clusters import Floats


class Variance(NamedTuple):
    """The variance of one judgment of one query, split: between queries, between repeats, and by slot order.

    `order` is NaN where passages were not judged in reverse as well. `error` is the standard error of the mean as it
    is; `more_queries` and `more_repeats` are what it would be if twice the calls went into the one or the other. Call
    for call, queries never buy less: a repeat leaves the differences between queries as they are.
    """

    query: float
    repeat: float
    order: float
    error: float
    more_queries: float
    more_repeats: float


def variance_of_repeats(values: Floats, swapped: Floats | None = None) -> Variance:
    """Split the variance of scores of shape (queries, repeats), at least two of each, no value missing.

    One-way random effects by the method of moments (Searle, Casella & McCulloch, Variance Components, 1992, section
    3.6): within queries is repeat, what is left between them is query. `swapped`, of shape (queries,), are the scores
    of the same queries with the passages in reverse order: half the mean squared change beyond what repeats alone
    change is order.
    """
    queries, repeats = values.shape
    if queries < 2 or repeats < 2:
        raise ValueError(f"variance needs two queries and two repeats at least, not {queries} and {repeats}")
    repeat = float(values.var(axis=1, ddof=1).mean())
    between = float(values.mean(axis=1).var(ddof=1))
    query = max(0.0, between - repeat / repeats)
    order = float("nan")
    if swapped is not None:
        # Var(swapped - mean of repeats) = 2 order + repeat (1 + 1 / repeats), if the order shifts each query anew.
        change = float(((swapped - values.mean(axis=1)) ** 2).mean())
        order = max(0.0, (change - repeat * (1 + 1 / repeats)) / 2)
    return Variance(
        query,
        repeat,
        order,
        float(np.sqrt((query + repeat / repeats) / queries)),
        float(np.sqrt((query + repeat / repeats) / (2 * queries))),
        float(np.sqrt((query + repeat / (2 * repeats)) / queries)),
    )
