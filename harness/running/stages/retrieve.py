"""Shared parts of the retrieve stage: ignored documents, replayed runs, checks and latency."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from harness.components.roles import Replay, Retriever
from harness.core.rankings import Rankings, Row
from harness.core.records import Document, Query
from harness.core.timing import TIMED_QUERIES, milliseconds
from harness.data.dataset import verify
from harness.data.manifest import PinnedFile
from harness.running.stages.passages import Passages
from harness.running.stages.ranking_checks import check_rankings
from harness.storage.store import Artifact


def without_ignored(
    retriever: Retriever, queries: Sequence[Query], passages: Passages, search: Callable[[Retriever], Rankings]
) -> Rankings:
    """Return the ranking without the documents that a query ignores, searched deeper to make up for them."""
    ignored = [query.ignore for query in queries]
    if not any(ignored):
        return search(retriever)
    chunks = passages.of_documents({doc for row in ignored for doc in row})
    gone = [np.concatenate([np.zeros(0, np.int64), *(chunks[doc] for doc in row)]) for row in ignored]
    deeper = cast(Retriever, replace(cast(Any, retriever), depth=retriever.depth + max(map(len, gone))))
    found = search(deeper)
    rows: list[Row] = []
    for at, left_out in enumerate(gone):
        ids, scores = found.row(at)
        kept = np.flatnonzero(~np.isin(ids, left_out))[: retriever.depth]
        rows.append((ids[kept], scores[kept], found.reaches(at)[kept]))
    return Rankings.of(rows)


def replayed(
    retriever: Replay, run: PinnedFile, queries: Sequence[Query], documents: Sequence[Document], passages: Passages
) -> Artifact:
    """Return the rankings of another system, read from its run file. Raises DataError if the file is not as pinned."""
    verify(run)
    ids = [query.id for query in queries]
    starts = np.unique(passages.doc, return_index=True)
    first = {documents[doc].id: at for doc, at in zip(*(part.tolist() for part in starts), strict=True)}
    ranked = without_ignored(
        retriever, queries, passages, lambda deeper: cast(Replay, deeper).replay(run.path, ids, first)
    )
    check_rankings(retriever, ranked, len(passages), ids)
    facts = {"chunks": len(passages), "index_bytes": 0, "truncated": 0}
    return Artifact({**ranked._asdict(), "ms": np.zeros(0)}, facts)


def timed(
    retriever: Retriever,
    ranked: Rankings,
    search_one: Callable[[int], object],
    facts: dict[str, float],
    queries: Sequence[Query],
) -> Artifact:
    """Check rankings and return them with `ms`, the milliseconds of `search_one` for each timed query.

    Raises ConfigError if the rankings are invalid.
    """
    check_rankings(retriever, ranked, int(facts["chunks"]), [query.id for query in queries])
    ms = milliseconds(search_one, range(min(TIMED_QUERIES, len(queries))))
    return Artifact({**ranked._asdict(), "ms": np.array(ms)}, facts)
