"""Score bins: counts, cluster-aware intervals and output; also columns of facts and the cost of a query."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from harness import Experiment, Trial, run
from harness.components.chunkers import Fixed, Sentence
from harness.components.embedders import Hashing
from harness.components.retrievers import BM25, Dense, Hybrid
from harness.evaluation.results import ScoreBin, ScoreBins
from harness.evaluation.stats import clustered_rate
from harness.running.launch_result import Launch
from harness.running.score_bins import score_bins
from harness.running.session import Session
from reports import bins, columns
from reports.page.figures import bin_bars


def test_the_rate_of_independent_trials_matches_wilson() -> None:
    """With one trial per cluster, the variance between clusters is that of single trials, times 10 / 9."""
    rate = clustered_rate(np.array([1.0] * 3 + [0.0] * 7), np.ones(10), range(10))
    reference = binomtest(3, 10).proportion_ci(method="wilson")
    assert rate.value == 0.3
    assert rate.low == pytest.approx(reference.low, abs=0.02)
    assert rate.high == pytest.approx(reference.high, abs=0.02)


def test_clusters_that_agree_widen_the_interval() -> None:
    """Ten clusters of ten identical trials carry as much information as ten trials."""
    alike = clustered_rate(np.repeat([10.0, 0.0], [3, 7]), np.full(10, 10.0), range(10))
    few = clustered_rate(np.repeat([1.0, 0.0], [3, 7]), np.ones(10), range(10))
    mixed = clustered_rate(np.full(10, 3.0), np.full(10, 10.0), range(10))
    assert (alike.low, alike.high) == pytest.approx((few.low, few.high))
    assert mixed.high - mixed.low < 0.6 * (alike.high - alike.low)


def test_rates_of_0_and_1_are_not_certain() -> None:
    """4 of 4 in two clusters: Wilson with two trials, 0.342 to 1. Without trials there is no rate."""
    rate = clustered_rate(np.array([2.0, 2.0]), np.array([2.0, 2.0]), [0, 1])
    assert (rate.value, rate.high) == (1, 1)
    assert rate.low == pytest.approx(binomtest(2, 2).proportion_ci(method="wilson").low)
    assert np.isnan(clustered_rate(np.zeros(3), np.zeros(3), [0, 1, 2]).value)


@pytest.fixture
def launched(garden_data: Path, tmp_path: Path) -> tuple[Session, Launch]:
    base = Trial("garden", Fixed(12), Dense(8), embedder=Hashing(256), tokenizer="words", metrics=("recall@3",))
    grid = {"chunker": [Fixed(12), Sentence(40)], "retriever": [Dense(8), Dense(4), BM25(), Hybrid(6, dense=Dense(6))]}
    made = Experiment("bands", base, grid, base_dir=tmp_path)
    launch = run(made, store=tmp_path / "s", tracking=f"sqlite:///{tmp_path / 'mlflow.db'}", report=None)
    return Session(made, tmp_path / "s"), launch


def test_bins_count_every_hit_once(launched: Any) -> None:
    """Only the deepest ranking by cosine of each chunking counts, 8 hits per query; BM25 scores are not cosines."""
    session, launch = launched
    (found,) = score_bins(session, (0.5, 0.2))
    assert (found.embedder, found.queries, found.chunkings) == ("hashing dimensions=256", 12, 2)
    assert [(each.low, each.high) for each in found.bins] == [(0.5, np.inf), (0.2, 0.5), (-np.inf, 0.2)]
    assert sum(each.hits for each in found.bins) == 12 * 8 * 2
    assert launch.score_bins[0].embedder == "hashing dimensions=256"
    # Recounted from the per-query rows of the two deep trials.
    relevant = {True: 0, False: 0}
    for trial in (session.trials[0], session.trials[4]):
        for row in session.outputs(trial).rows():
            for hit in row["kept"] if row["evidence"] else []:
                relevant[hit["score"] >= 0.5] += hit["relevant"]
    assert found.bins[0].relevant == relevant[True]
    assert sum(each.relevant for each in found.bins) == sum(relevant.values())


def test_bins_are_shown(launched: Any) -> None:
    """As text, as JSON without infinities, and as a figure."""
    found = score_bins(launched[0], (0.5, 0.2))
    output = bins.text(found)
    for label in ("from 0.5", "0.2 to 0.5", "below 0.2", "count as irrelevant"):
        assert label in output
    assert json.loads(bins.as_json(found))[0]["bins"][0]["high"] is None
    empty = ScoreBins(
        "e", 1, 1, (ScoreBin(0.5, np.inf, 0, 0, np.nan, np.nan, np.nan), ScoreBin(-np.inf, 0.5, 4, 1, 0.25, 0.1, 0.6))
    )
    assert bin_bars([*found, empty]).startswith("<svg")


def test_columns(launched: Any) -> None:
    """Means and facts by trial; a fact that does not apply is shown as a dash, an unknown one is an error."""
    launch = launched[1]
    rows = columns.columns(launch, ["recall@3", "chunks", "embed_p50_ms"])
    assert len(rows) == len(launch.results)
    assert rows[0][1][0] == launch.results[0].mean("recall@3")
    assert np.isnan(next(values for name, values in rows if "bm25" in name)[2])
    assert columns.shown("embed_p50_ms", float("nan")) == "–"
    assert columns.shown("usd_per_query", 0.000121) == "$0.00012"
    assert columns.shown("usd_per_query", 0.0) == "$0"
    assert columns.shown("chunks", 12345.0) == "12,345"
    assert "| trial | chunks |" in columns.markdown(launch, ["chunks"])
    with pytest.raises(Exception, match="no trial has 'chunk'. Did you mean 'chunks'"):
        columns.columns(launch, ["chunk"])


def test_the_cost_of_a_query(garden_data: Path, tmp_path: Path) -> None:
    """Mean context tokens times the reader's price, 2 dollars per million tokens."""
    from harness.components.selectors import TopK
    from harness.experiment.reader_price import Reader

    base = Trial("garden", Fixed(12), BM25(), tokenizer="words", metrics=("recall@3",), selector=(TopK(3),))
    made = Experiment("cost", base, base_dir=tmp_path, reader=Reader(price=2.0))
    facts = run(made, store=tmp_path / "s", log=False).results[0].efficiency
    assert facts["usd_per_query"] == pytest.approx(facts["context_tokens"] * 2e-6)
    assert Reader("gpt-5.4-mini").usd(1e6) > 0
