"""Reranker scores of pairs of query and passage, computed once for all trials and stored."""

import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from harness.components.component import identity, post_answer_names
from harness.components.llm_roles import few_enough
from harness.components.roles import BaseReranker
from harness.core.blame import blamed, shown
from harness.core.errors import ConfigError
from harness.core.progress import progress
from harness.core.records import Floats
from harness.llm import AnswerCache, Prompter, Task, stored
from harness.storage.digest import digest
from harness.storage.model_outputs import Pair, ScoreCache, Scored

WARM_UP = "warm-up"
"""The text that loads a reranker's model before it is timed."""


def pair_namespace(reranker: BaseReranker) -> str:
    """Return the cache namespace of a reranker's scores: the settings that affect them, not how many hits are kept."""
    known = identity(reranker)
    left_out = post_answer_names(reranker)
    record = {name: value for name, value in known["settings"].items() if name not in left_out}
    return digest({**known, "settings": record})


def rerank_pace(reranker: BaseReranker) -> str:
    """The kind of work under which the pace of a reranker is kept, in seconds per pair."""
    return f"rerank {pair_namespace(reranker)[:16]}"


def scores(step: BaseReranker, pairs: Sequence[Pair], cache: ScoreCache, answers: AnswerCache) -> Mapping[Pair, Scored]:
    """Return a score for each pair; missing ones are computed query by query, and stored.

    A language model is never called here, its grades are read from the cache: raises JudgeError if too many of them are
    missing. Raises ConfigError if the reranker returns invalid scores.
    """
    if step.prompter is not None:
        return _graded(step, step.prompter, pairs, answers)
    place = pair_namespace(step)
    found = cache.get(place, pairs)
    by_query = _missing(pairs, found)
    with progress(step.name(), len(by_query), unit="queries") as advance:
        for new in rescored(step, by_query):
            cache.put(place, new)
            found.update(new)
            advance(1)
    return found


def rescored(step: BaseReranker, by_query: Mapping[str, Sequence[str]]) -> Iterator[dict[Pair, Scored]]:
    """Yield the scores of texts for each query, computed now. Raises ConfigError if they are invalid."""
    if by_query and not step.metered:
        step.rescore(WARM_UP, [WARM_UP], ())  # loads the model, which is not timed
    for query, texts in by_query.items():
        begin = time.perf_counter()
        where = f"selector {step.name()}: query {shown(query)}"
        with blamed(step, where, texts):
            given = _checked(where, step.rescore(query, texts, ()), len(texts))
        ms = (time.perf_counter() - begin) * 1000 / len(texts)
        yield {(query, text): Scored(float(one), ms) for text, one in zip(texts, given, strict=True)}


def _checked(where: str, returned: Floats, texts: int) -> Floats:
    given = np.asarray(returned)
    if given.shape != (texts,):
        raise ConfigError(f"{where}: returned scores of shape {given.shape} for {texts} texts")
    if given.dtype.kind not in "fiu" or not np.isfinite(given).all():
        raise ConfigError(f"{where}: returned a score that is not a number")
    return given


def unscored(step: BaseReranker, pairs: Sequence[Pair], cache: ScoreCache) -> dict[str, list[str]]:
    """Return the texts that have no score yet, by query."""
    return _missing(pairs, cache.get(pair_namespace(step), pairs))


def _missing(pairs: Sequence[Pair], found: Mapping[Pair, Scored]) -> dict[str, list[str]]:
    return _by_query([pair for pair in pairs if pair not in found])


def _by_query(pairs: Sequence[Pair]) -> dict[str, list[str]]:
    by_query: dict[str, list[str]] = {}
    for query, text in pairs:
        by_query.setdefault(query, []).append(text)
    return by_query


def questions(step: BaseReranker, pairs: Sequence[Pair]) -> list[Task]:
    """Return the questions that a step has for its language model about distinct pairs, in their order."""
    return [task for query, texts in _by_query(pairs).items() for task in step.questions(query, texts)]


def _graded(step: BaseReranker, prompter: Prompter, pairs: Sequence[Pair], answers: AnswerCache) -> dict[Pair, Scored]:
    asked = {query: (texts, step.questions(query, texts)) for query, texts in _by_query(pairs).items()}
    tasks = [task for _, tasks in asked.values() for task in tasks]
    known = stored(answers, prompter, tasks)
    few_enough(step, list(known.values()), "passages have no grade")
    addresses = dict(zip(tasks, prompter.addresses(tasks), strict=True))
    shares = answers.shares(list(addresses.values()))
    made = {}
    for query, (texts, own) in asked.items():
        values = step.rescore(query, texts, [known[task] for task in own])
        for text, task, value in zip(texts, own, values.tolist(), strict=True):
            made[query, text] = Scored(value, *shares.get(addresses[task], (0.0, 0.0)))
    return made
