"""An accepted baseline: the scores of a launch that was accepted, to compare later launches with."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from harness.core.errors import DataError
from harness.core.records import Floats

FORMAT = 1


@dataclass(frozen=True)
class BaselineTrial:
    """A trial's params, scores by query (lowest and highest value, None if there is none) and evidence outcomes.

    `code` is what decides its results besides params, by component: the sha256 of a custom component's file, the
    version of a built-in one, and further facts. `selections` are the passages selected for each query: document, start
    and end. Both are empty in baselines of version 0.1.
    """

    name: str
    params: Mapping[str, str]
    fingerprint: str
    scores: Mapping[str, tuple[Sequence[float | None], Sequence[float | None]]]
    evidence_outcomes: Sequence[Sequence[str]]
    code: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    selections: Sequence[Sequence[tuple[str, int, int]]] = field(default_factory=list)

    def bounds(self, metric: str) -> tuple[Floats, Floats]:
        """The lowest and highest value per query, each of shape (queries,); NaN if there is none."""
        low, high = (np.array([math.nan if v is None else v for v in side]) for side in self.scores[metric])
        return low, high

    def mean(self, metric: str) -> float:
        """The mean over the queries that have a value, using the midpoint of the bounds for missing judgments."""
        low, high = self.bounds(metric)
        values = ((low + high) / 2)[~np.isnan(low)]
        return math.fsum(values) / len(values) if len(values) else math.nan


@dataclass(frozen=True)
class Baseline:
    """Who accepted which launch, when and why; what it was measured on; and its trials.

    `measured` has everything that must be equal for scores to be comparable: the content of data and queries, how
    evidence is counted, and the judges. `packages` are the versions of the packages that may change a number.
    """

    experiment: str
    launch: str
    who: str
    when: str
    why: str
    measured: Mapping[str, Any]
    queries: Sequence[str]
    trials: Sequence[BaselineTrial]
    packages: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The baseline as JSON-serializable values; `from_json` reads them."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], *, where: str) -> "Baseline":
        """The baseline of `to_json`. Raises DataError, which starts with `where`, if `value` is anything else."""
        if not isinstance(value, Mapping) or value.get("format") != FORMAT:
            raise DataError(f"{where}: is not a baseline of format {FORMAT}; accept a new baseline")
        from pydantic import TypeAdapter, ValidationError

        try:
            content = {name: inner for name, inner in value.items() if name != "format"}
            content["trials"] = [_of_this_version(trial) for trial in content.get("trials") or ()]
            found = TypeAdapter(cls).validate_python(content)
        except ValidationError as error:
            first = error.errors()[0]
            message = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise DataError(f"{where}: {message}; accept a new baseline") from None
        count = len(found.queries)
        sides = (side for trial in found.trials for pair in trial.scores.values() for side in pair)
        if any(len(side) != count for side in sides) or any(
            len(trial.evidence_outcomes) != count for trial in found.trials
        ):
            raise DataError(f"{where}: does not have one score for each of {count} queries; accept a new baseline")
        return found


def _of_this_version(trial: Any) -> Any:
    """A trial in the current format: until version 0.2 its `evidence_outcomes` were called `fates`."""
    if not isinstance(trial, Mapping) or "fates" not in trial:
        return trial
    renamed = {name: value for name, value in trial.items() if name != "fates"}
    return {**renamed, "evidence_outcomes": trial["fates"]}
