"""Results as pandas data frames: one table of everything, and a comparison."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from harness.run.launch_result import Launch

if TYPE_CHECKING:
    from pandas import DataFrame

    from reports.compare import Comparison


def scores_frame(launch: Launch) -> "DataFrame":
    """Every score of a launch: a row per trial, query and metric.

    Columns: trial, query, cluster, metric, value (NaN where the query has none), and failed, which is true where a
    judgment is missing.
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


def comparison_frame(comparison: "Comparison") -> "DataFrame":
    """A row per trial, a column per field; losses as `lost_…` columns, 0 where a trial has none of a kind."""
    import pandas as pd

    fates = sorted({fate for row in comparison.rows for fate in row.losses if fate != "found"})
    rows = []
    for row in comparison.rows:
        told = asdict(row)
        losses = told.pop("losses")
        rows.append({**told, "found": losses.get("found", 0), **{f"lost_{f}": losses.get(f, 0) for f in fates}})
    return pd.DataFrame(rows)
