"""Effects of the grid's factors on a metric."""

from collections.abc import Sequence

from harness.evaluation.results import TrialResult
from harness.evaluation.stats import Effect, factor_effects
from harness.experiment.trial_names import SLOTS, labels, slot_of, varied
from harness.running.launch_result import Launch
from harness.running.primary_metric import scores_of


def effects(launch: Launch, metric: str, clusters_by: str = "documents") -> list[Effect]:
    """Returns main effects and two-way interactions of the launch's factors, with cluster-based intervals.

    If judgments of a query are missing, the midpoint of its possible scores is used.
    """
    scores = scores_of(launch.results, metric, clusters_by)
    return factor_effects((scores.low + scores.high) / 2, factors(launch.results), scores.clusters, seed=scores.seed)


def factors(results: Sequence[TrialResult]) -> dict[str, list[str]]:
    """Returns the level of every factor in each trial. A slot is a factor; crossed settings of a slot are one each."""
    every = [result.params for result in results]
    text = labels(every)
    found: dict[str, list[str]] = {}
    for slot in SLOTS:
        keys = [key for key in varied(every) if slot_of(key) == slot]
        # If some trials have no embedder, the retriever determines it: it is no factor of its own.
        if not keys or any(params.get(slot) == "none" for params in every if slot == "embedder"):
            continue
        columns = {key: [params.get(key, "–") for params in every] for key in keys}
        met = set(zip(*columns.values(), strict=True))
        crossed = 1
        for column in columns.values():
            crossed *= len(set(column))
        found |= columns if len(keys) > 1 and crossed == len(met) else {slot: [label[slot] for label in text]}
    return found
