"""What each factor of the grid does to a metric."""

from collections.abc import Sequence

from harness.evaluation.results import TrialResult
from harness.evaluation.stats import Effect, factor_effects
from harness.experiment.trial_names import SLOTS, labels, slot_of, varied
from harness.running.launch_result import Launch
from harness.running.primary_metric import scores_of


def effects(launch: Launch, metric: str, clusters_by: str = "documents") -> list[Effect]:
    """Main effects and two-way interactions of the launch's factors, with intervals that resample clusters.

    Where judgments are missing, a query counts with the middle of what its score can be.
    """
    scores = scores_of(launch.results, metric, clusters_by)
    return factor_effects((scores.low + scores.high) / 2, factors(launch.results), scores.clusters, seed=scores.seed)


def factors(results: Sequence[TrialResult]) -> dict[str, list[str]]:
    """The level of every factor in each trial: a slot is a factor, or each of its settings where they are crossed."""
    every = [result.params for result in results]
    text = labels(every)
    found: dict[str, list[str]] = {}
    for slot in SLOTS:
        keys = [key for key in varied(every) if slot_of(key) == slot]
        # An embedder follows from the retriever where some trials have none.
        if not keys or any(params.get(slot) == "none" for params in every if slot == "embedder"):
            continue
        columns = {key: [params.get(key, "–") for params in every] for key in keys}
        met = set(zip(*columns.values(), strict=True))
        crossed = 1
        for column in columns.values():
            crossed *= len(set(column))
        found |= columns if len(keys) > 1 and crossed == len(met) else {slot: [label[slot] for label in text]}
    return found
