"""Reranker scores of pairs of query and passage, computed once for all trials and stored."""

import time
from collections.abc import Mapping, Sequence

import numpy as np

from harness.components.llm_roles import UNGRADED, LlmReranker, few_enough
from harness.components.roles import Reranker
from harness.core.blame import blamed, shown
from harness.core.errors import ConfigError
from harness.core.progress import progress
from harness.llm import AnswerCache, Label, Task, stored
from harness.running.stages.cache_keys import pair_namespace
from harness.storage.model_outputs import Pair, ScoreCache, Scored

WARM_UP = "warm-up"
"""The text that loads a reranker's model before it is timed."""


def scores(step: Reranker, pairs: Sequence[Pair], cache: ScoreCache, answers: AnswerCache) -> Mapping[Pair, Scored]:
    """Return a score for each pair; missing ones are computed query by query, and stored.

    A language model is never called here, its grades are read from the cache: raises JudgeError if too many of them are
    missing. Raises ConfigError if the reranker returns invalid scores.
    """
    if isinstance(step, LlmReranker):
        return _graded(step, pairs, answers)
    place = pair_namespace(step)
    found = cache.get(place, pairs)
    by_query = _missing(pairs, found)
    if by_query and not step.metered:
        step.score(WARM_UP, [WARM_UP])  # loads the model, which is not timed
    with progress(step.name(), len(by_query)) as advance:
        for query, texts in by_query.items():
            begin = time.perf_counter()
            where = f"selector {step.name()}: query {shown(query)}"
            with blamed(where, texts):
                given = np.asarray(step.score(query, texts))
            if given.shape != (len(texts),):
                raise ConfigError(f"{where}: returned scores of shape {given.shape} for {len(texts)} texts")
            if given.dtype.kind not in "fiu" or not np.isfinite(given).all():
                raise ConfigError(f"{where}: returned a score that is not a number")
            ms = (time.perf_counter() - begin) * 1000 / len(texts)
            new = {(query, text): Scored(float(one), ms) for text, one in zip(texts, given, strict=True)}
            cache.put(place, new)
            found.update(new)
            advance(1)
    return found


def unscored(step: Reranker, pairs: Sequence[Pair], cache: ScoreCache) -> int:
    """Return the number of requests that `scores` would send for the missing pairs."""
    missing = _missing(pairs, cache.get(pair_namespace(step), pairs))
    return sum(step.requests(len(texts)) for texts in missing.values())


def _missing(pairs: Sequence[Pair], found: Mapping[Pair, Scored]) -> dict[str, list[str]]:
    """The texts that have no score yet, by query."""
    by_query: dict[str, list[str]] = {}
    for query, text in pairs:
        if (query, text) not in found:
            by_query.setdefault(query, []).append(text)
    return by_query


def tasks_of(step: LlmReranker, pairs: Sequence[Pair]) -> dict[Pair, Task]:
    """Return the task that asks a language model to grade each pair."""
    return {pair: step.task(*pair) for pair in pairs}


def _graded(step: LlmReranker, pairs: Sequence[Pair], answers: AnswerCache) -> dict[Pair, Scored]:
    tasks = tasks_of(step, pairs)
    known = stored(answers, step, list(tasks.values()))
    few_enough(step, list(known.values()), "passages have no grade")
    addresses = dict(zip(tasks, step.addresses(list(tasks.values())), strict=True))
    shares = answers.shares(list(addresses.values()))
    made = {}
    for pair, task in tasks.items():
        label = known[task]
        value = step.value(label) if isinstance(label, Label) else UNGRADED
        made[pair] = Scored(value, *shares.get(addresses[pair], (0.0, 0.0)))
    return made
