"""Published figures on BEIR SciFact: 5,183 abstracts, 300 test queries, judged by document."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Experiment, Retriever, Trial, run
from harness.components.chunkers import Fixed
from harness.components.embedders import Local
from harness.components.retrievers import BM25, Dense
from harness.data.importers import import_dataset


def ndcg(retriever: Retriever, source: Path, folder: Path) -> tuple[float, float]:
    """nDCG@10 and recall@100 with one chunk per document."""
    import_dataset("beir", source, folder / "datasets/scifact")  # its test set is open
    metrics = ("ndcg@10", "recall@100")
    base = Trial("scifact", Fixed(100_000), retriever, queries="test", embedder=Local(), metrics=metrics)
    launch = run(Experiment("scifact", base, base_dir=folder), store=folder / "store", log=False)
    return launch.results[0].mean("ndcg@10"), launch.results[0].mean("recall@100")


def test_bm25(shared: Callable[[str], Path], tmp_path: Path) -> None:
    """Lucene's k1 0.9 and b 0.4 with stems and stop words: .679 and .925 are published."""
    found = ndcg(BM25(depth=100, k1=0.9, b=0.4), shared("beir-scifact"), tmp_path)
    assert found == (pytest.approx(0.679, abs=0.015), pytest.approx(0.925, abs=0.02))


@pytest.mark.long
def test_dense(shared: Callable[[str], Path], tmp_path: Path) -> None:
    """all-MiniLM-L6-v2: .645 and .925 are published. Embeds 1.5 million tokens: minutes."""
    found = ndcg(Dense(depth=100), shared("beir-scifact"), tmp_path)
    assert found == (pytest.approx(0.645, abs=0.010), pytest.approx(0.925, abs=0.02))
