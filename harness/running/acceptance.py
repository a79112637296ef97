"""An accepted baseline: the scores of a launch as they were found good, to hold later ones against."""

import math
from typing import Any

from harness.components.component import identity
from harness.core.errors import ConfigError
from harness.core.records import Floats
from harness.evaluation.baseline import Baseline, BaselineTrial
from harness.evaluation.results import TrialResult
from harness.running.launch_result import Launch
from harness.running.primary_metric import bounds_of
from harness.running.session import Session


def accept(launch: Launch, *, who: str, when: str, why: str) -> Baseline:
    """What a launch is remembered by once somebody has found it good."""
    assert launch.session is not None
    return Baseline(
        launch.experiment.name,
        launch.id,
        who,
        when,
        why,
        measured_on(launch.session),
        launch.results[0].queries,
        [_trial(result) for result in launch.results],
    )


def _trial(result: TrialResult) -> BaselineTrial:
    scores = {}
    for metric in (*result.scores, *result.judged):
        (low,), (high,) = bounds_of([result], metric)
        scores[metric] = (_plain(low), _plain(high))
    return BaselineTrial(result.name, dict(result.params), result.fingerprint, scores, result.evidence_outcomes)


def _plain(values: Floats) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]


def measured_on(session: Session) -> dict[str, Any]:
    """What must be the same for the scores of two launches to be comparable."""
    trial = session.trials[0]
    return {
        "documents": session.manifest.corpus.sha256,
        "queries": session.manifest.query_set(trial.queries).sha256,
        "tokenizer": trial.tokenizer,
        "coverage": trial.coverage,
        "copies": trial.copies,
        **({"relevance": f"from grade {trial.relevant_from:g}"} if trial.relevant_from else {}),
        **({"unanswerable": trial.unanswerable} if trial.unanswerable != "skip" else {}),
        "judges": [{**identity(judge), "facts": dict(judge.facts())} for judge in trial.judges],
    }


def require_comparable(baseline: Baseline, session: Session) -> None:
    """Raise ConfigError where the session's scores would not mean what the accepted ones meant."""
    today = measured_on(session)
    by = f"accepted on {baseline.when} by {baseline.who}"
    for what in dict.fromkeys((*today, *baseline.measured)):
        now = today.get(what)
        if baseline.measured.get(what) != now:
            verb = "are" if what.endswith("s") else "is"
            raise ConfigError(
                f"gate: the {what} {verb} not as in the baseline {by}: {_short(now)} instead of "
                f"{_short(baseline.measured.get(what))}; scores on them cannot be compared; "
                "--accept --why sets a new baseline"
            )
    known = [trial.name for trial in baseline.trials]
    if len(session.names) != len(known) or (len(known) > 1 and set(session.names) != set(known)):
        raise ConfigError(
            f"gate: the trials are {', '.join(session.names)}; the baseline {by} has {', '.join(known)}; "
            "--accept --why sets a new baseline"
        )


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
