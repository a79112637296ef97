"""Accepted baselines: the scores of a launch that later launches are compared with."""

import math
from collections.abc import Mapping
from typing import Any

from harness.components.component import identity
from harness.core.environment import deciding_versions
from harness.core.errors import ConfigError
from harness.core.records import Floats
from harness.evaluation.baseline import Baseline, BaselineTrial
from harness.evaluation.results import TrialResult
from harness.running.launch_result import Launch
from harness.running.primary_metric import bounds_of
from harness.running.session import Session


def accept(launch: Launch, *, who: str, when: str, why: str) -> Baseline:
    """Return the baseline that records a launch: its scores, what they were measured on, and who accepted it and why.

    `when` is a date as text. The launch must have a session.
    """
    assert launch.session is not None
    return Baseline(
        launch.experiment.name,
        launch.id,
        who,
        when,
        why,
        measured_on(launch.session),
        launch.results[0].queries,
        [_trial(result, launch.session) for result in launch.results],
        deciding_versions(),
    )


def _trial(result: TrialResult, session: Session) -> BaselineTrial:
    scores = {}
    for metric in (*result.scores, *result.judged):
        (low,), (high,) = bounds_of([result], metric)
        scores[metric] = (_plain(low), _plain(high))
    return BaselineTrial(
        result.name,
        dict(result.params),
        result.fingerprint,
        scores,
        result.evidence_outcomes,
        code_of(result),
        [selected(session, result.name, query) for query in range(len(result.queries))],
    )


def selected(session: Session, trial: str, query: int) -> list[tuple[str, int, int]]:
    """Return the passages that a trial selected for a query, by its index: document, start and end, in rank order."""
    outputs = session.outputs(session.trials[session.names.index(trial)])
    return [(passage.doc, passage.start, passage.end) for passage in outputs.selections.kept(query)]


def code_of(result: TrialResult) -> dict[str, dict[str, str]]:
    """Return what decides a trial's results besides its params, by component; see `BaselineTrial`."""
    parts = (part for held in result.settings.values() for part in (held if isinstance(held, list) else [held]))
    found: dict[str, dict[str, str]] = {}
    for part in parts:
        if isinstance(part, Mapping) and "role" in part:
            known = {"file": part["source"]} if "source" in part else {"version": str(part["version"])}
            known |= {name: str(value) for name, value in part.get("facts", {}).items()}
            found.setdefault(f"{part['role']} {part['name']}", known)
    return found


def _plain(values: Floats) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]


def measured_on(session: Session) -> dict[str, Any]:
    """Return the facts that two launches must share for their scores to be comparable, keyed by a readable name."""
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
    """Raise ConfigError if the session's scores cannot be compared with the baseline's, or if its trials differ."""
    current = measured_on(session)
    by = f"accepted on {baseline.when} by {baseline.who}"
    for what in dict.fromkeys((*current, *baseline.measured)):
        now = current.get(what)
        if baseline.measured.get(what) != now:
            verb = "are" if what.endswith("s") else "is"
            raise ConfigError(
                f"gate: the {what} {verb} not the same as in the baseline {by}: {_short(now)} instead of "
                f"{_short(baseline.measured.get(what))}; the scores cannot be compared; "
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
