"""A small corpus that vector databases index, and how their rankings differ from those found in memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.components.embedders import Hashing
from harness.components.roles import Batch, DatabaseRetriever, IndexPlace
from harness.core.rankings import Rankings
from harness.data.dataset import read_corpus
from harness.data.manifest import read_manifest
from harness.data.record_files import read_queries

ROOT = Path(__file__).parents[2]
"""Of the project, whose cookbook is searched."""


class SearchedCorpus:
    """Paragraphs of the cookbook, some of them twice, and its questions."""

    def __init__(self) -> None:
        manifest = read_manifest(ROOT / "datasets" / "cookbook")
        paragraphs = [part for doc in read_corpus(manifest) for part in doc.text.split("\n\n") if len(part) > 30]
        self.texts = [*paragraphs, *paragraphs[:40], "…"]
        self.queries = [*(query.text for query in read_queries(manifest.query_set("validation"))), "…"]
        self.vectors, self.asked = Hashing(64).embed(self.texts).vectors, Hashing(64).embed(self.queries).vectors

    def batches(self, retriever: DatabaseRetriever) -> Iterator[Batch]:
        """The chunks, a hundred at a time."""
        for begin in range(0, len(self.texts), 100):
            at = slice(begin, begin + 100)
            yield Batch(
                np.arange(len(self.texts))[at], self.texts[at], self.vectors[at] if retriever.uses_vectors else None
            )

    def found(self, retriever: DatabaseRetriever, folder: Path) -> Rankings:
        """What a database finds."""
        place = IndexPlace("harness_cookbook", folder)
        retriever.build(place, self.batches(retriever))
        with retriever.opened(place) as opened:
            return retriever.nearest(opened, self.queries, self.asked if retriever.uses_vectors else None)

    def expected(self, retriever: Any) -> Rankings:
        """What is found in memory."""
        found: Rankings = retriever.search(
            retriever.index(self.texts, self.vectors), self.vectors, self.queries, self.asked
        )
        return found


def differing(found: Rankings, expected: Rankings, error: float = 1e-6) -> int:
    """The number of queries whose rankings are not the same, with scores that differ by a relative error at most."""
    assert found.scores == pytest.approx(expected.scores, rel=error, abs=2e-5)
    return sum(found.row(at)[0].tolist() != expected.row(at)[0].tolist() for at in range(expected.queries))
