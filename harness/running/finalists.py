"""The trials that a final test scores on the locked query set: the baseline and the trial chosen on validation."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.core.errors import ConfigError
from harness.evaluation.stats import best_of, cluster_sums
from harness.experiment.experiment import Experiment, TrialSet
from harness.experiment.params import find_baseline
from harness.running.judging.judging import results_of
from harness.running.primary_metric import primary_metric, scores_of
from harness.running.session import Session, store_folder


def finalists(
    experiment: Experiment, *, store: Path | str | None = None, choose: Mapping[str, Any] | None = None
) -> Experiment:
    """Return the experiment reduced to its baseline and its chosen trial, in that order, with their names in the grid.

    The chosen trial has the highest mean of the primary metric on the validation queries, or is the first that matches
    the params in `choose`. Raises ConfigError if the choice needs validation scores and some trials have not run.
    """
    if len(experiment.trials()) == 1:
        return experiment
    session = Session(experiment, store_folder(store, experiment.base_dir))
    every = [trial.params() for trial in session.trials]
    baseline = find_baseline(every, experiment.compare.baseline)
    if choose:
        chosen = find_baseline(every, choose, "choose")
    else:
        missing = sum(not session.outputs(trial).stored()["score"] for trial in session.trials)
        if missing:
            message = f"{missing} of {len(every)} trials have not run on '{session.trials[0].queries}'"
            raise ConfigError(f"--final: {message}; run the experiment first, validation chooses the trial")
        results, _, _ = results_of(session)
        scores = scores_of(results, primary_metric(experiment, results), experiment.compare.clusters)
        low, sizes = cluster_sums(scores.low, scores.clusters)
        high, _ = cluster_sums(scores.high, scores.clusters)
        chosen = best_of(low, high, sizes, seed=scores.seed, tested=~scores.withheld).best
        if chosen == baseline:
            # Said before the locked set is opened: it would be opened for nothing.
            raise ConfigError(
                f"--final: the trial with the highest mean on '{session.trials[0].queries}' is the baseline "
                f"'{session.names[baseline]}', so there is nothing to compare; name another with --choose, or the "
                "baseline to score it alone"
            )
    kept = list(dict.fromkeys((baseline, chosen)))
    return replace(
        experiment,
        trial_set=TrialSet(
            tuple(session.trials[at] for at in kept),
            tuple(session.names[at] for at in kept),
            session.names[chosen],
        ),
    )
