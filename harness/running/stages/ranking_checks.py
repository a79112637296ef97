"""Check what a retriever returns before it is used, and read rankings from their artifact."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.components.roles import BaseRetriever
from harness.core.blame import understood
from harness.core.errors import ConfigError
from harness.core.rankings import Rankings
from harness.storage.digest import canonical
from harness.storage.store import Artifact


def overlap(ranked: Rankings, exact: Rankings) -> float:
    """Return the recall of a ranking against an exact one, averaged over queries; 1 for a query without exact hits."""
    recalls = []
    for query in range(exact.queries):
        expected = exact.row(query)[0]
        recalls.append(np.isin(expected, ranked.row(query)[0]).mean() if len(expected) else 1.0)
    return float(np.mean(recalls)) if recalls else 1.0


def read_rankings(artifact: Artifact) -> Rankings:
    """Return the rankings stored in an artifact of the retrieve stage."""
    return Rankings(*(artifact.arrays[name] for name in Rankings._fields))


_RANGES = {"unit": (0.0, 1.0), "cosine": (-1.0, 1.0)}


def check_rankings(retriever: BaseRetriever, ranked: Rankings, chunks: int, queries: Sequence[str]) -> None:
    """Raise ConfigError if a retriever returned invalid rankings for `queries` (ids) over `chunks` chunks."""
    where = f"retriever {retriever.name()}"
    with understood(where, "Rankings of chunk numbers with scores"):
        _require_rankings(where, retriever, ranked, chunks, queries)


def checked_artifact(where: str, made: Any) -> Artifact:
    """Return what `index` returned. Raises ConfigError, beginning with `where`, if it cannot be stored."""
    if not isinstance(made, Artifact):
        raise ConfigError(f"{where}: must return an Artifact, not {type(made).__name__}")
    with understood(where, "an Artifact of named arrays of numbers or text, and data that JSON can hold"):
        canonical(made.data)
        odd = [name for name, array in made.arrays.items() if array.dtype.kind == "O" or name == "__data__"]
    if odd:
        message = f"the array {odd[0]!r} cannot be stored"
        raise ConfigError(f"{where}: {message}; use numbers or text, and a name other than '__data__'")
    return made


def _require_rankings(where: str, retriever: BaseRetriever, ranked: Any, chunks: int, queries: Sequence[str]) -> None:
    if not isinstance(ranked, Rankings):
        raise ConfigError(f"{where}: search must return Rankings, not {type(ranked).__name__}")
    if ranked.queries != len(queries):
        raise ConfigError(f"{where}: returned rankings for {ranked.queries} queries instead of {len(queries)}")
    if ranked.scores.dtype.kind not in "fiu" or not np.isfinite(ranked.scores).all():
        raise ConfigError(f"{where}: returned a score that is not a number")
    low, high = _RANGES.get(retriever.scale, (-np.inf, np.inf))
    for at, query in enumerate(queries):
        ids, scores = ranked.row(at)
        if len(ids) and not (ids.min() >= 0 and ids.max() < chunks):
            raise ConfigError(f"{where}: query '{query}': returned a chunk number outside 0..{chunks - 1}")
        if len(np.unique(ids)) < len(ids):
            raise ConfigError(f"{where}: query '{query}': returned a chunk twice")
        if len(scores) and not (scores.min() >= low - 1e-3 and scores.max() <= high + 1e-3):
            raise ConfigError(
                f"{where}: query '{query}': returned scores from {scores.min():.4g} to {scores.max():.4g}, but its "
                f"scale is {low:g} to {high:g}"
            )
