"""The scores of a launch as a pandas data frame."""

from typing import TYPE_CHECKING

import numpy as np

from harness.running.launch_result import Launch

if TYPE_CHECKING:
    from pandas import DataFrame


def scores_frame(launch: Launch) -> "DataFrame":
    """Returns every score of a launch: a row per trial, query and metric.

    Columns: trial, query, cluster, metric, value (NaN if the query has none), and failed, which is true if a judgment
    is missing.
    """
    import pandas as pd

    parts = []
    for result in launch.results:
        queries = {"trial": result.name, "query": result.queries, "cluster": result.clusters}
        for metric, values in result.scores.items():
            parts.append(pd.DataFrame({**queries, "metric": metric, "value": values, "failed": False}))
        for measure, judged in result.judged.items():
            failed = np.isnan(judged.values) & ~np.isnan(judged.low)
            parts.append(pd.DataFrame({**queries, "metric": measure, "value": judged.values, "failed": failed}))
    return pd.concat(parts, ignore_index=True)
