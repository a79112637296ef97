"""Statistics on per-query scores: intervals, tests, choice of the best trial and power, in numpy and scipy."""

from harness.evaluation.stats.bootstrap import Intervals, bootstrap_means, cluster_bootstrap
from harness.evaluation.stats.choice import Choice, best_of
from harness.evaluation.stats.clusters import (
    ALPHA,
    FEW_CLUSTERS,
    FEWEST_CLUSTERS,
    TESTABLE_CLUSTERS,
    Flags,
    Floats,
    cluster_sums,
    design_effect,
)
from harness.evaluation.stats.effects import Effect, factor_effects
from harness.evaluation.stats.power import normal_critical, queries_needed
from harness.evaluation.stats.rates import Estimate, clustered_rate, wilson
from harness.evaluation.stats.repeats import Variance, variance_of_repeats
from harness.evaluation.stats.signflips import Differences, Sums, holm, paired_differences

__all__ = [
    "ALPHA",
    "FEWEST_CLUSTERS",
    "FEW_CLUSTERS",
    "TESTABLE_CLUSTERS",
    "Choice",
    "Differences",
    "Effect",
    "Estimate",
    "Flags",
    "Floats",
    "Intervals",
    "Sums",
    "Variance",
    "best_of",
    "bootstrap_means",
    "cluster_bootstrap",
    "cluster_sums",
    "clustered_rate",
    "design_effect",
    "factor_effects",
    "holm",
    "normal_critical",
    "paired_differences",
    "queries_needed",
    "variance_of_repeats",
    "wilson",
]
