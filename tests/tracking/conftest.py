"""The experiment whose launches are logged here."""

from pathlib import Path

import pytest

from harness import Compare, Experiment, Trial
from harness.components.chunkers import Fixed, Recursive
from harness.components.embedders import Hashing
from harness.components.retrievers import BM25, Dense
from harness.components.selectors import Dedup, TopK


@pytest.fixture
def study(garden_data: Path, tmp_path: Path) -> Experiment:
    """Four trials."""
    base = Trial(
        "garden",
        Fixed(20),
        Dense(),
        tokenizer="words",
        embedder=Hashing(64),
        selector=(Dedup(), TopK(6)),
        metrics=("recall@3", "ndcg@5"),
    )
    grid = {"chunker": [Fixed(20), Recursive(40)], "retriever": [Dense(), BM25()]}
    return Experiment("beds", base, grid, "Which?", Compare({"chunker": "fixed"}, "recall@50t"), base_dir=tmp_path)
