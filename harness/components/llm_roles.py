"""Roles of components that call a language model; the harness makes the calls, with its cache and budget."""

import dataclasses
from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from harness.components.component import Component, Fraction, identity, post_answer, post_answer_names, settings
from harness.components.roles import BaseAugmenter, BaseChunker, BaseReranker, CutInputs, CutRequest, Judge
from harness.core.errors import JudgeError
from harness.core.records import Case, Document, Drop, Floats, Hit, Outcome, Query, Spans
from harness.llm import Completion, Failure, Label, Prompter, Task
from harness.llm import Outcome as Answer
from harness.llm.answers import UNASKED
from harness.storage.digest import digest


class LlmComponent(Prompter, Component):
    """A component that calls a language model; its answers are identified by its settings and its prompt."""

    @property
    def prompter(self) -> Prompter:
        """The component itself."""
        return self

    def facts(self) -> dict[str, str]:
        """The digest of the prompt, besides the facts of the other base classes."""
        return {**super().facts(), "prompt": prompt_digest(self)}

    def labelling(self) -> dict[str, Any]:
        """What identifies a stored answer: role, name, version, prompt and the settings that affect the answer."""
        known = identity(self)
        record = {name: known[name] for name in ("role", "name", "version", "source") if name in known}
        # The model and server settings are recorded separately, and `post_answer` settings do not change an answer.
        left_out = {field.name for field in dataclasses.fields(Prompter)}
        left_out |= post_answer_names(self)
        asked = {name: value for name, value in settings(self).items() if name not in left_out}
        return record | {"settings": asked, "prompt": prompt_digest(self)}


@lru_cache(maxsize=256)
def prompt_digest(prompter: Prompter) -> str:
    """A digest of the prompt's wording and answer schema, computed from a sample task."""
    prompt = prompter.prompt((prompter.sample(),))
    schema = prompt.schema.json_schema(list(prompt.slots))
    return digest([prompt.system, prompt.document, prompt.user, schema])[:16]


@dataclasses.dataclass(frozen=True)
class LlmChunker(LlmComponent, BaseChunker):
    """Cuts a document at boundaries chosen by a language model; the harness makes the calls, with cache and budget.

    At most the fraction `max_failed` of the questions may fail; the results report how many did.
    """

    max_failed: Fraction = post_answer(0.02)

    @abstractmethod
    def tasks(self, doc: Document) -> list[Task]:
        """The questions about the document, in order; empty if there is nothing to decide."""

    @abstractmethod
    def join(self, doc: Document, answers: Sequence[Answer]) -> Spans:
        """Return the chunks, given an answer or a failure for each task."""

    def request(self, doc: Document) -> CutRequest:
        """Request answers to `tasks`."""
        return CutRequest([], self.tasks(doc))

    def cut(self, doc: Document, given: CutInputs) -> list[Spans]:
        """Return what `join` returns, as the only scale."""
        return [self.join(doc, given.answers)]


@dataclasses.dataclass(frozen=True)
class LlmAugmenter(LlmComponent, BaseAugmenter):
    """An augmenter whose contexts a language model writes; the harness makes the calls, with its cache and budget.

    At most the fraction `max_failed` of the chunks may be left without a context; the results report how many were.
    If more fail, the run stops, and the next run asks again for the missing contexts.
    """

    max_failed: Fraction = post_answer(0.02)

    @abstractmethod
    def tasks(self, doc: Document, spans: Sequence[tuple[int, int]]) -> list[Task]:
        """One task per span, in order; spans that share a context have equal tasks."""

    def questions(self, doc: Document, spans: Sequence[tuple[int, int]]) -> list[Task]:
        """Return what `tasks` returns."""
        return self.tasks(doc, spans)

    def contexts(self, doc: Document, spans: Sequence[tuple[int, int]], answers: Sequence[Answer]) -> list[str]:
        """Return the text that the model wrote for each span; empty if that failed."""
        return [answer.text if isinstance(answer, Completion) else "" for answer in answers]


UNGRADED = -1.0
"""The score of a passage whose grade is missing."""


@dataclasses.dataclass(frozen=True)
class LlmReranker(LlmComponent, BaseReranker):
    """A reranker that lets a language model grade passages; the harness makes the calls, with its cache and budget.

    A passage without a grade is dropped with the reason "no grade". If more than the fraction `max_failed` of all
    passages has no grade, the run stops, and the next run asks again for the missing grades.
    """

    max_failed: Fraction = post_answer(0.02)

    @abstractmethod
    def task(self, query: str, text: str) -> Task:
        """The task that asks for the grade of one passage."""

    @abstractmethod
    def value(self, label: Label) -> float:
        """Convert a label to a score of at least 0."""

    def questions(self, query: str, texts: Sequence[str]) -> list[Task]:
        """Return the `task` of each text."""
        return [self.task(query, text) for text in texts]

    def rescore(self, query: str, texts: Sequence[str], answers: Sequence[Answer]) -> Floats:
        """Return the `value` of each grade; UNGRADED if it is missing."""
        return np.array([self.value(one) if isinstance(one, Label) else UNGRADED for one in answers], np.float64)

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """Drop passages without a grade, then rank the others by score and keep the best `k`."""
        # Removed before ranking: a placeholder score would shift the others if a later step rescales scores.
        outcome = super().select(query, [hit for hit in hits if hit.score != UNGRADED])
        missing = [Drop(hit, "no grade") for hit in hits if hit.score == UNGRADED]
        return Outcome(outcome.kept, outcome.dropped + missing)


def few_enough(part: BaseChunker | BaseAugmenter | BaseReranker, found: Sequence[Answer], what: str) -> int:
    """Count the failures. Raises JudgeError if they are more than the fraction `max_failed` of all outcomes."""
    failed = [outcome for outcome in found if isinstance(outcome, Failure)]
    if len(failed) > part.max_failed * len(found):
        # A failure that came back says more than a question that was not sent because of it.
        example = min(failed, key=lambda failure: failure.kind in UNASKED)
        message = f"{len(failed)} of {len(found)} {what}, such as {example}"
        raise JudgeError(f"{part.role} {part.name()}: {message}; run again to retry them")
    return len(failed)


@dataclasses.dataclass(frozen=True)
class LlmJudge(LlmComponent, Judge):
    """A judge that calls a language model; see `Prompter`.

    Each task is judged `repeats` times and the scores are averaged; each repeat has its own cache entry. If more than
    the fraction `max_failed` of the queries has no value, no mean is reported.
    """

    repeats: Annotated[int, Field(gt=0, le=10)] = post_answer(1)
    max_failed: Fraction = post_answer(0.02)

    def labelling(self) -> dict[str, Any]:
        """What identifies a stored answer; includes whether each passage is judged in a call of its own."""
        # Passages in the same call can influence each other, so answers from single-passage calls are kept separate.
        return super().labelling() | {"isolated": self.batch == 1}


def claims_task(case: Case) -> Task:
    """The task that asks for the claims of a query's reference answer."""
    return Task(case.query.text, (), case.query.answer or "")
