"""The results of a launch as pandas data frames: of trials, of queries, of hits."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from harness.evaluation.results import TrialResult
from harness.running.session import Session
from harness.running.stages.ranking_checks import read_rankings

if TYPE_CHECKING:
    from pandas import DataFrame


def trials_frame(results: Sequence[TrialResult], metrics: Sequence[str]) -> "DataFrame":
    """A row per trial, by name: the params that vary among the trials, the mean of each metric, costs and latencies."""
    import pandas as pd

    every = list(dict.fromkeys(name for result in results for name in result.params))
    varied = [name for name in every if len({result.params.get(name) for result in results}) > 1]
    rows = [
        {name: result.params.get(name) for name in varied}
        | {metric: result.mean(metric) for metric in metrics}
        | dict(result.efficiency)
        for result in results
    ]
    return pd.DataFrame(rows, index=pd.Index([result.name for result in results], name="trial"))


def queries_frame(results: Sequence[TrialResult], metrics: Sequence[str]) -> "DataFrame":
    """A row per trial and query: trial, query, cluster, and the value of each metric, NaN if the query has none."""
    import pandas as pd

    parts = []
    for result in results:
        values = {name: result.judged[name].values for name in result.judged} | dict(result.scores)
        queries = {"trial": result.name, "query": result.queries, "cluster": result.clusters}
        parts.append(pd.DataFrame(queries | {metric: values[metric] for metric in metrics}))
    return pd.concat(parts, ignore_index=True)


def rankings_frame(session: Session) -> "DataFrame":
    """A row per trial, query and retrieved hit, before selection: trial, query, rank, doc, start, end, score."""
    import pandas as pd

    parts = []
    for trial, name in zip(session.trials, session.names, strict=True):
        outputs = session.outputs(trial)
        ranked, passages = read_rankings(outputs.rankings), outputs.passages
        hits = [chunk for query in range(ranked.queries) for chunk in passages.hits(ranked, query)]
        counts = np.diff(ranked.offsets)
        columns = {
            "trial": name,
            "query": np.repeat([query.id for query in outputs.queries], counts),
            "rank": np.arange(len(hits)) - np.repeat(ranked.offsets[:-1], counts) + 1,
            "doc": [chunk.doc for chunk in hits],
            "start": [chunk.start for chunk in hits],
            "end": [chunk.end for chunk in hits],
            "score": ranked.scores,
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)
