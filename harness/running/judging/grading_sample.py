"""Draw passages at random for people to grade."""

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
    """Draw passages for people to grade: `per_query` for each query, at random from all that any trial selected.

    Every passage in a query's pool is equally likely, regardless of its trials and ranks, so that the corrected means
    of all trials are unbiased. `queries` limits the number of queries, also drawn at random. Raises ConfigError if a
    trial has not run or a number is below 1.
    """
    if per_query < 1 or (queries is not None and queries < 1):
        raise ConfigError("judge sample: --per-query and --queries: expected at least 1")
    session = finished_session(experiment, store, "judge sample")
    pools = passage_pools(session)
    asked = {case.query.id: case for case in session.outputs(session.trials[0]).cases()}
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
    """Return the experiment's session. Raises ConfigError, naming `command`, if a trial has no stored selection."""
    session = Session(experiment, store_folder(store, experiment.base_dir))
    missing = sum(not session.outputs(trial).stored()["select"] for trial in session.trials)
    if missing:
        message = f"{missing} of {len(session.trials)} trials of '{experiment.name}' have not run"
        raise ConfigError(f"{command}: {message}; run them with `harness run`")
    return session


def judged_depth(experiment: Experiment) -> int | None:
    """Return the number of top passages that the judges use; None if one of them uses all."""
    depths = [judge.k for judge in experiment.base.judges]
    return None if not depths or None in depths else max(depth for depth in depths if depth)


def passage_pools(session: Session) -> dict[str, dict[str, None]]:
    """Return the texts of the passages that any trial selected for each query, within the ranks that judges use."""
    pools: dict[str, dict[str, None]] = {}
    depth = judged_depth(session.experiment)
    for trial in session.trials:
        for case in session.outputs(trial).cases():
            texts = (passage.text for passage in case.passages[:depth])
            pools.setdefault(case.query.id, {}).update(dict.fromkeys(texts))
    return pools
