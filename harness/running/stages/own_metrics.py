"""A researcher's own metrics, computed for each query from the passages of its selection."""

import contextlib
import math
from collections.abc import Mapping, Sequence

import numpy as np

from harness.components.roles import Metric, Selected
from harness.core.blame import blamed
from harness.core.errors import ConfigError
from harness.core.records import Chunk, Floats, Query, TokenMap
from harness.evaluation.metrics import Items, Ranking, split_metric
from harness.evaluation.metrics.matching import Passage
from harness.running.stages.workspace import Workspace


def own_scores(
    names: Sequence[str],
    own: Sequence[Metric],
    items: Sequence[Items],
    kept: Sequence[Sequence[Passage]],
    maps: Mapping[str, TokenMap],
    work: Workspace,
) -> dict[str, Floats]:
    """Return the values of the own metrics among `names`, each (queries,), NaN for a query that has none.

    Raises ConfigError if a metric returns anything but a finite number or None.
    """
    by_name = {metric.name(): metric for metric in own}
    found: dict[str, Floats] = {}
    for name in names:
        cut = split_metric(name)
        if cut.measure not in by_name:
            continue
        metric, values = by_name[cut.measure], []
        for query, needed, row in zip(work.queries, items, kept, strict=True):
            passages = row[: cut.k] if cut.tokens is None else _within(row, needed, cut.tokens, maps)
            values.append(_value(metric, query, _selected(query, needed, passages, work)))
        found[name] = np.array(values, np.float64)
    return found


def _within(row: Sequence[Passage], needed: Items, tokens: int, maps: Mapping[str, TokenMap]) -> Sequence[Passage]:
    """The passages cut to a token budget, as for the built-in metrics; all chunks of a document are kept."""
    return Ranking(row, needed._replace(by_document=False)).within(tokens, maps, row).passages


def _selected(query: Query, needed: Items, passages: Sequence[Passage], work: Workspace) -> Selected:
    ranking = Ranking(passages, needed._replace(by_document=False))
    chunks = [
        Chunk(p.doc, p.start, p.end, work.text(p.doc, p.start, p.end), "", p.tokens, p.context_tokens) for p in passages
    ]
    return Selected(query, chunks, ranking.found, [ranking.is_relevant(passage) for passage in passages])


def _value(metric: Metric, query: Query, selected: Selected) -> float:
    where = f"metric {metric.name()}: query '{query.id}'"
    with blamed(metric, where, selected.passages, selected.found, selected.relevant):
        value = metric.value(selected)
    if value is None:
        return math.nan
    if isinstance(value, bool | int | float | np.floating | np.integer):
        with contextlib.suppress(OverflowError):  # a Python integer can exceed every float
            if math.isfinite(float(value)):
                return float(value)
    raise ConfigError(f"{where}: returned {value!r:.60}; expected a finite number, or None if the query has no value")
