"""The bootstrap: by hand, against scipy, and by simulation."""

import numpy as np
import pytest
from scipy.stats import bootstrap

from harness.evaluation.stats import bootstrap_means, cluster_bootstrap, cluster_sums
from harness.evaluation.stats.bootstrap import expanded_tail, times_drawn


def test_sums_by_cluster() -> None:
    """Queries 1 and 3 share a cluster."""
    sums, sizes = cluster_sums(np.array([[1.0, 2.0, 3.0]]), ["a", "b", "a"])
    assert sums.tolist() == [[4.0, 2.0]]
    assert sizes.tolist() == [2.0, 1.0]


def test_equal_scores_have_an_interval_of_zero_width() -> None:
    """Nothing varies, so there is no uncertainty."""
    found = cluster_bootstrap(np.full((1, 12), 0.25), range(12), seed=1)
    assert (found.mean[0], found.low[0], found.high[0], found.clusters) == (0.25, 0.25, 0.25, 12)


def test_fewer_than_five_clusters_give_no_interval() -> None:
    """Four documents are too few to estimate how documents vary."""
    found = cluster_bootstrap(np.random.default_rng(0).random((2, 40)), np.arange(40) % 4, seed=1)
    assert np.isnan(found.low).all()
    assert not np.isnan(found.mean).any()


def test_with_single_query_clusters_it_is_the_plain_bootstrap() -> None:
    """scipy's percentile bootstrap, up to resampling noise of two independent runs."""
    scores = np.random.default_rng(3).beta(2, 1, 60)
    found = cluster_bootstrap(scores[None], range(60), seed=5, resamples=20_000)
    expected = bootstrap((scores,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(6))
    assert found.low[0] == pytest.approx(expected.confidence_interval.low, abs=0.004)
    assert found.high[0] == pytest.approx(expected.confidence_interval.high, abs=0.004)


def test_intervals_cover_the_truth_when_queries_share_documents() -> None:
    """400 data sets of 60 clusters with a strong common part: about 95 % of intervals cover the true mean, 0."""
    rng = np.random.default_rng(11)
    covered = naive = 0
    clusters = np.repeat(np.arange(60), 4)
    for trial in range(400):
        scores = rng.normal(size=60)[clusters] + 0.5 * rng.normal(size=240)
        found = cluster_bootstrap(scores[None], clusters, seed=trial, resamples=1000)
        covered += found.low[0] <= 0 <= found.high[0]
        plain = cluster_bootstrap(scores[None], range(240), seed=trial, resamples=1000)
        naive += plain.low[0] <= 0 <= plain.high[0]
    assert 0.92 <= covered / 400 <= 0.98
    assert naive / 400 < 0.80  # why clusters matter


def test_the_seed_determines_the_interval() -> None:
    """Equal seeds give equal intervals, different seeds different ones."""
    scores = np.random.default_rng(0).random((3, 30))
    one, two, three = (cluster_bootstrap(scores, range(30), seed=seed) for seed in (1, 1, 2))
    assert one.low.tolist() == two.low.tolist()
    assert one.low.tolist() != three.low.tolist()


@pytest.mark.parametrize("count", [1000, 1001])
def test_each_resample_draws_as_many_clusters_as_there_are(count: int) -> None:
    """With either algorithm: each cluster once per resample on average, with a variance near 1, and no two alike."""
    drawn = times_drawn(np.random.default_rng(0), count, 30)
    assert drawn.shape == (30, count)
    assert (drawn.sum(axis=1) == count).all()
    assert drawn.min() == 0
    assert drawn.var() == pytest.approx(1, abs=0.05)
    assert len(np.unique(drawn, axis=0)) == 30


def test_the_block_size_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven resamples of ten clusters at once, two at a time, or one at a time if not even one fits."""
    sums, sizes = np.random.default_rng(0).random((2, 10)), np.ones(10)
    once = bootstrap_means(sums, sizes, seed=1, resamples=7)
    assert once.shape == (7, 2)
    for block in (20, 5):
        monkeypatch.setattr("harness.evaluation.stats.bootstrap.BLOCK", block)
        assert bootstrap_means(sums, sizes, seed=1, resamples=7) == pytest.approx(once)


def test_tails_of_few_clusters_by_hand() -> None:
    """With five, the bound is root of 5/4 times Student's 2.776: 3.104; the normal tail beyond it is .00095."""
    assert expanded_tail(5, 0.95) == pytest.approx(0.000954, abs=2e-6)
    assert expanded_tail(100_000, 0.95) == pytest.approx(0.025, abs=1e-5)


def test_five_clusters_have_an_interval() -> None:
    """The min number; each trial has its own mean."""
    found = cluster_bootstrap(np.array([[0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 0.0, 0.0, 0.0, 1.0]]), range(5), seed=0)
    assert found.mean.tolist() == [0.5, 0.2]
    assert (found.low < found.mean).all()
    assert (found.mean < found.high).all()


def test_no_queries_have_no_mean() -> None:
    """NaN for every trial."""
    found = cluster_bootstrap(np.zeros((2, 0)), [], seed=0)
    assert np.isnan([found.mean, found.low, found.high]).tolist() == [[True, True]] * 3
