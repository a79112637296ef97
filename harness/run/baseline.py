"""An accepted baseline: the scores of a launch as they were found good, to hold later ones against."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from harness.components.component import identity
from harness.core.errors import ConfigError, DataError
from harness.core.records import Floats
from harness.evaluation.results import TrialResult
from harness.run.launch_result import Launch
from harness.run.primary_metric import bounds_of
from harness.run.session import Session

FORMAT = 1


@dataclass(frozen=True)
class AcceptedTrial:
    """A trial's params, its scores query by query (least and greatest, None where there is none), and all fates."""

    name: str
    params: Mapping[str, str]
    fingerprint: str
    scores: Mapping[str, tuple[Sequence[float | None], Sequence[float | None]]]
    fates: Sequence[Sequence[str]]

    def bounds(self, metric: str) -> tuple[Floats, Floats]:
        """Least and greatest value per query, NaN where there is none."""
        low, high = (np.array([math.nan if v is None else v for v in side]) for side in self.scores[metric])
        return low, high

    def mean(self, metric: str) -> float:
        """The mean over the queries that have a value; of what is missing, the middle of what it can be."""
        low, high = self.bounds(metric)
        values = ((low + high) / 2)[~np.isnan(low)]
        return math.fsum(values) / len(values) if len(values) else math.nan


@dataclass(frozen=True)
class Accepted:
    """Who accepted which launch, when and why; what it was measured on; and its trials.

    `measured` holds whatever must be the same for scores to be comparable: data and queries by content, how evidence
    is counted, and the judges.
    """

    experiment: str
    launch: str
    who: str
    when: str
    why: str
    measured: Mapping[str, Any]
    queries: Sequence[str]
    trials: Sequence[AcceptedTrial]

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], *, where: str) -> "Accepted":
        """Read back what `to_json` gave; raises DataError where it is something else."""
        if not isinstance(value, Mapping) or value.get("format") != FORMAT:
            raise DataError(f"{where}: is no accepted baseline of format {FORMAT}; accept one anew")
        from pydantic import TypeAdapter, ValidationError

        try:
            found = TypeAdapter(cls).validate_python({name: inner for name, inner in value.items() if name != "format"})
        except ValidationError as error:
            first = error.errors()[0]
            told = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise DataError(f"{where}: {told}; accept a baseline anew") from None
        count = len(found.queries)
        sides = (side for trial in found.trials for pair in trial.scores.values() for side in pair)
        if any(len(side) != count for side in sides) or any(len(trial.fates) != count for trial in found.trials):
            raise DataError(f"{where}: its scores are not one for each of {count} queries; accept a baseline anew")
        return found


def accept(launch: Launch, *, who: str, when: str, why: str) -> Accepted:
    """What a launch is remembered by once somebody has found it good."""
    assert launch.session is not None
    return Accepted(
        launch.experiment.name,
        launch.id,
        who,
        when,
        why,
        measured_on(launch.session),
        launch.results[0].queries,
        [_trial(result) for result in launch.results],
    )


def _trial(result: TrialResult) -> AcceptedTrial:
    scores = {}
    for metric in (*result.scores, *result.judged):
        (low,), (high,) = bounds_of([result], metric)
        scores[metric] = (_plain(low), _plain(high))
    return AcceptedTrial(result.name, dict(result.params), result.fingerprint, scores, result.fates)


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


def require_comparable(accepted: Accepted, session: Session) -> None:
    """Raise ConfigError where the session's scores would not mean what the accepted ones meant."""
    today = measured_on(session)
    by = f"accepted on {accepted.when} by {accepted.who}"
    for what in dict.fromkeys((*today, *accepted.measured)):
        now = today.get(what)
        if accepted.measured.get(what) != now:
            verb = "are" if what.endswith("s") else "is"
            raise ConfigError(
                f"gate: the {what} {verb} not as in the baseline {by}: {_short(now)} instead of "
                f"{_short(accepted.measured.get(what))}; scores on them cannot be compared; "
                "--accept --why sets a new baseline"
            )
    known = [trial.name for trial in accepted.trials]
    if len(session.names) != len(known) or (len(known) > 1 and set(session.names) != set(known)):
        raise ConfigError(
            f"gate: the trials are {', '.join(session.names)}; the baseline {by} has {', '.join(known)}; "
            "--accept --why sets a new baseline"
        )


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
