"""Passages drawn at random for people to grade."""

import random
from pathlib import Path

from harness.core.errors import ConfigError
from harness.experiment.experiment import Experiment
from harness.running.judging.grading_sheet import Row
from harness.running.session import Session, store_folder
from harness.storage.digest import digest


def sample(
    experiment: Experiment,
    *,
    store: Path | str | None = None,
    per_query: int = 2,
    queries: int | None = None,
    seed: int = 0,
) -> list[Row]:
    """Passages for people to grade: of each query `per_query`, at random from all that any trial selected.

    Every passage of a query's pool has the same chance, whichever trials found it and wherever it ranked; that is what
    makes the corrected means of all trials unbiased. Raises ConfigError where a trial has not run.
    """
    if per_query < 1 or (queries is not None and queries < 1):
        raise ConfigError("judge sample: --per-query and --queries: expected at least 1")
    session = finished_session(experiment, store, "judge sample")
    pools = passage_pools(session)
    asked = {case.query.id: case for case in session.pipeline(session.trials[0]).cases(session.trials[0])}
    ids = sorted(query for query, pool in pools.items() if pool)
    chosen = random.Random(f"queries {seed}").sample(ids, min(queries, len(ids))) if queries else ids
    rows = []
    for query in sorted(chosen):
        texts, known = sorted(pools[query]), digest(sorted(pools[query]))[:16]
        drawn = random.Random(f"{seed} {query}").sample(texts, min(per_query, len(texts)))
        about = asked[query].query
        rows += [Row(query, about.text, about.answer or "", text, len(texts), len(drawn), known) for text in drawn]
    return rows


def finished_session(experiment: Experiment, store: Path | str | None, command: str) -> Session:
    session = Session(experiment, store_folder(store))
    missing = sum(not session.pipeline(trial).stored(trial)["select"] for trial in session.trials)
    if missing:
        message = f"{missing} of {len(session.trials)} trials of '{experiment.name}' have not run"
        raise ConfigError(f"{command}: {message}; `harness run` does that")
    return session


def judged_depth(experiment: Experiment) -> int | None:
    """How deep the judges look into a selection; None for all of it."""
    depths = [getattr(judge, "k", None) for judge in experiment.base.judges]
    return None if not depths or None in depths else max(depth for depth in depths if depth)


def passage_pools(session: Session) -> dict[str, dict[str, None]]:
    """The passages that any trial selected for each query, as deep as the judges look."""
    pools: dict[str, dict[str, None]] = {}
    depth = judged_depth(session.experiment)
    for trial in session.trials:
        for case in session.pipeline(trial).cases(trial):
            texts = (passage.text for passage in case.passages[:depth])
            pools.setdefault(case.query.id, {}).update(dict.fromkeys(texts))
    return pools
