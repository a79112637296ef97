"""A part of an experiment: some of its trials, or a sample of its queries, to try something out."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness.core.errors import ConfigError
from harness.core.plurals import plural
from harness.experiment.experiment import Experiment, TrialSet
from harness.experiment.params import has_values, matching
from harness.experiment.trial_names import names


def part_of(experiment: Experiment, wanted: Mapping[str, Any] | None = None, *, limit: int | None = None) -> Experiment:
    """The experiment with only the trials whose params have the `wanted` values, on at most `limit` queries.

    The queries are the same in every run, and a sample: those whose ids have the lowest hashes. What is computed for a
    part is used by the whole experiment, too. Results are marked as partial, and the trials keep their names. If the
    baseline is not among the trials, they are compared with the first of them. Raises ConfigError if no trial matches.
    """
    if not wanted and limit is None:
        return experiment
    if limit is not None and limit < 1:
        raise ConfigError(f"limit: expected at least 1 query, got {limit}")
    trials = experiment.trials()
    every = [trial.params() for trial in trials]
    kept = matching(every, wanted or {}, "filter")
    known = experiment.trial_set.names if experiment.trial_set else names(every)
    params = [every[at] for at in kept]
    compare = experiment.compare
    known_baselines = [wanted for wanted in compare.baselines if any(has_values(one, wanted) for one in params)]
    first, *further = known_baselines or [{}]
    compare = replace(compare, baseline=first, further=tuple(further))
    said = [f"{len(kept)} of {plural(len(trials), 'trial')}"] if len(kept) < len(trials) else []
    said += [f"at most {plural(limit, 'query')}"] if limit is not None else []
    chosen = tuple(replace(trials[at], limit=limit) for at in kept)
    return replace(
        experiment,
        compare=compare,
        trial_set=TrialSet(chosen, tuple(known[at] for at in kept)),
        partial=", ".join(said),
    )
