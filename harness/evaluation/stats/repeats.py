"""Variance components of a judge's mean: queries, repeats (judge variance), and the order of the passages."""

from typing import NamedTuple

import numpy as np

from harness.evaluation.stats.clusters import Floats


class Variance(NamedTuple):
    """The variance of one judgment of one query, split into parts: between queries, between repeats, by passage order.

    `order` is NaN if passages were not also judged in reverse order. `error` is the standard error of the current mean;
    `more_queries` and `more_repeats` are its values with twice the queries or twice the repeats. For the same number
    of calls, more queries never help less than more repeats, since repeats do not reduce the variance between queries.
    """

    query: float
    repeat: float
    order: float
    error: float
    more_queries: float
    more_repeats: float


def variance_of_repeats(values: Floats, swapped: Floats | None = None) -> Variance:
    """Split the variance of scores of shape (queries, repeats) without missing values.

    One-way random effects by the method of moments (Searle, Casella & McCulloch, Variance Components, 1992, section
    3.6): `repeat` is the variance within queries, `query` the remaining variance between them. `swapped`, (queries,),
    are the scores of the same queries with the passages in reverse order; `order` is half the mean squared change
    minus the part due to repeats. Raises ValueError for fewer than two queries or two repeats.
    """
    queries, repeats = values.shape
    if queries < 2 or repeats < 2:
        raise ValueError(f"variance needs at least two queries and two repeats, not {queries} and {repeats}")
    repeat = float(values.var(axis=1, ddof=1).mean())
    between = float(values.mean(axis=1).var(ddof=1))
    query = max(0.0, between - repeat / repeats)
    order = float("nan")
    if swapped is not None:
        # Var(swapped - mean of repeats) = 2 order + repeat (1 + 1 / repeats), with independent order effects by query.
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
