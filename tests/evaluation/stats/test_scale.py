"""All statistics on 100,000 queries, in 10,000 clusters or with one cluster per query, in bounded memory."""

import resource
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from harness.evaluation.stats import (
    Sums,
    best_of,
    cluster_bootstrap,
    cluster_sums,
    clustered_rate,
    design_effect,
    factor_effects,
    paired_differences,
    queries_needed,
    variance_of_repeats,
)
from harness.evaluation.stats.bootstrap import times_drawn
from harness.evaluation.stats.clusters import standard_errors
from harness.evaluation.stats.rater_agreement import kappa_interval, ppi_by_query

QUERIES = 100_000
CLUSTERS = [pytest.param(10_000, id="documents"), pytest.param(QUERIES, id="queries", marks=pytest.mark.long)]


@pytest.fixture(autouse=True)
def bounded_memory() -> Iterator[None]:
    """Each test may increase the memory of the process by at most a gigabyte."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    unit = 1024**2 if sys.platform != "darwin" else 1024**3
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / unit < 1.0


@pytest.mark.parametrize("clusters", CLUSTERS)
def test_intervals_tests_and_choices(clusters: int) -> None:
    """Three trials, the second better by 0.01 in every query: it is detected, with the normal interval."""
    rng = np.random.default_rng(0)
    member = np.arange(QUERIES) % clusters
    scores = rng.random((3, QUERIES))
    scores[1] += 0.01
    mean = cluster_bootstrap(scores[:1], member, seed=0, resamples=1000)
    error = scores[0].std() / np.sqrt(QUERIES)
    assert (mean.high[0] - mean.low[0]) / 2 == pytest.approx(1.96 * error, rel=0.1)
    sums, sizes = cluster_sums(scores[1:] - scores[0], member)
    found = paired_differences(Sums(sums, sums, sizes), seed=0, flips=2000)
    assert (found.low[0] > 0, found.adjusted[0] < 0.05, found.adjusted[1] > 0.05) == (True, True, True)
    errors = standard_errors(sums, sizes)
    assert queries_needed(errors, QUERIES, 0.01, critical=1.96)[0] < QUERIES
    assert design_effect(scores, member)[0] == pytest.approx(1, abs=0.1)
    choice = best_of(*[cluster_sums(scores, member)[0]] * 2, sizes, seed=0)
    assert (choice.best, choice.p_best[1] > 0.9) == (1, True)


@pytest.mark.parametrize("clusters", CLUSTERS)
def test_effects_rates_and_agreement(clusters: int) -> None:
    """Factors of a grid, rates, kappa and corrected means."""
    rng = np.random.default_rng(1)
    member = np.arange(QUERIES) % clusters
    scores = rng.random((4, QUERIES))
    effects = factor_effects(scores, {"a": ["x", "x", "y", "y"], "b": ["u", "v", "u", "v"]}, member, seed=0)
    assert all(effect.low < effect.value < effect.high for effect in effects)
    people = rng.random(QUERIES) < 0.3
    judge = people ^ (rng.random(QUERIES) < 0.1)
    rate = clustered_rate(people.astype(float), np.ones(QUERIES), member)
    assert rate.low < 0.3 < rate.high
    kappa = kappa_interval(people, judge, member, seed=0, resamples=400)
    assert kappa.high - kappa.low < 0.03
    assert ppi_by_query(people * 1.0, judge * 1.0, judge * 1.0).value == pytest.approx(people.mean())
    assert variance_of_repeats(rng.random((QUERIES, 3))).query < 0.01


def test_draws_by_index_are_multinomial() -> None:
    """Beyond 1,000 clusters draws are counted by index, with the same sums and variance as the multinomial."""
    drawn = times_drawn(np.random.default_rng(0), 2000, 50)
    assert (drawn.sum(axis=1) == 2000).all()
    assert drawn.mean() == 1
    assert drawn.var() == pytest.approx(1, abs=0.02)
