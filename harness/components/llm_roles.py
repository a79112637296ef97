"""The roles of components that ask a language model: through the harness' calls, cache and budget."""

import dataclasses
from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, ClassVar

from pydantic import Field

from harness.components.component import Component, Fraction, identity, post_answer, post_answer_names, settings
from harness.components.roles import Augmenter, Chunker, Judge, Reranker
from harness.core.errors import JudgeError
from harness.core.records import Case, Document, Drop, Floats, Hit, Outcome, Query, Spans
from harness.llm import Failure, Label, Prompter, Task
from harness.llm import Outcome as Answer
from harness.storage.digest import digest


class LlmComponent(Prompter, Component):
    """A component that asks a language model: what its answers depend on follows from its settings and its prompt."""

    def facts(self) -> dict[str, str]:
        return {**super().facts(), "prompt": prompt_digest(self)}

    def labelling(self) -> dict[str, Any]:
        known = identity(self)
        record = {name: known[name] for name in ("role", "name", "version", "source") if name in known}
        # Neither where and how the model is asked, which is told apart, nor what serves only the scores.
        left_out = {field.name for field in dataclasses.fields(Prompter)}
        left_out |= post_answer_names(self)
        asked = {name: value for name, value in settings(self).items() if name not in left_out}
        return record | {"settings": asked, "prompt": prompt_digest(self)}


@lru_cache(maxsize=256)
def prompt_digest(prompter: Prompter) -> str:
    """What identifies the wording and the form of a prompt, by those of one about a sample."""
    prompt = prompter.prompt((prompter.sample(),))
    schema = prompt.schema.json_schema(list(prompt.slots))
    return digest([prompt.system, prompt.document, prompt.user, schema])[:16]


@dataclasses.dataclass(frozen=True)
class LlmChunker(LlmComponent, Chunker):
    """Cuts a document where a language model says, through the harness' calls, cache and budget.

    At most the share `max_failed` of the questions may stay without an answer, which the results then tell.
    """

    max_failed: Fraction = post_answer(0.02)

    @abstractmethod
    def tasks(self, doc: Document) -> list[Task]:
        """What is asked about the document, in order; none where there is nothing to decide."""

    @abstractmethod
    def join(self, doc: Document, answers: Sequence[Answer]) -> Spans:
        """The chunks, given an answer or a failure for each task."""

    def split(self, doc: Document) -> Spans:
        raise TypeError("the model is asked by the harness; see `join`")


@dataclasses.dataclass(frozen=True)
class LlmAugmenter(LlmComponent, Augmenter):
    """An augmenter whose contexts a language model writes, through the harness' calls, cache and budget.

    At most the share `max_failed` of the chunks may be left without a context, which the results then tell; beyond,
    the run stops, and the next one asks for the missing ones again.
    """

    max_failed: Fraction = post_answer(0.02)

    @abstractmethod
    def tasks(self, doc: Document, spans: Sequence[tuple[int, int]]) -> list[Task]:
        """What is asked for the context of each span, in order; spans that share a context share a task."""

    def augment(self, doc: Document, spans: Sequence[tuple[int, int]]) -> list[str]:
        raise TypeError("contexts that a model writes are asked for by the harness")


UNGRADED = -1.0
"""Stands for the score of a passage whose grade is missing."""


@dataclasses.dataclass(frozen=True)
class LlmReranker(LlmComponent, Reranker):
    """A reranker that has a language model grade passages, through the harness' calls, cache and budget.

    A passage whose grade is missing is dropped, with that reason; beyond the share `max_failed` of all passages the
    run stops, and the next one asks for the missing ones again.
    """

    max_failed: Fraction = post_answer(0.02)

    @abstractmethod
    def task(self, query: str, text: str) -> Task:
        """What is asked about one passage."""

    @abstractmethod
    def value(self, label: Label) -> float:
        """The score a label stands for, at least 0."""

    def score(self, query: str, texts: Sequence[str]) -> Floats:
        raise TypeError("grades that a model gives are asked for by the harness")

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        # A failure is no grade: kept as a number, it would move those of others as soon as scores are scaled.
        outcome = super().select(query, [hit for hit in hits if hit.score != UNGRADED])
        missing = [Drop(hit, "no grade") for hit in hits if hit.score == UNGRADED]
        return Outcome(outcome.kept, outcome.dropped + missing)


def few_enough(prompter: LlmChunker | LlmAugmenter | LlmReranker, found: Sequence[Answer], what: str) -> int:
    """How many outcomes are failures; raises JudgeError where that is more than the share `max_failed`."""
    failed = [outcome for outcome in found if isinstance(outcome, Failure)]
    if len(failed) > prompter.max_failed * len(found):
        message = f"{len(failed)} of {len(found)} {what}, such as {failed[0]}"
        raise JudgeError(f"{prompter.role} {prompter.name()}: {message}; run again to ask for those once more")
    return len(failed)


@dataclasses.dataclass(frozen=True)
class LlmJudge(LlmComponent, Judge):
    """A judge that asks a language model, by `Prompter`'s means.

    `repeats` judgments are taken of each thing, and their scores averaged; each has its own place in the cache. Where
    more than the share `max_failed` of the queries has no value, no mean is told.
    """

    repeats: Annotated[int, Field(gt=0, le=10)] = post_answer(1)
    max_failed: Fraction = post_answer(0.02)

    uses_model: ClassVar[bool] = True

    def labelling(self) -> dict[str, Any]:
        # Passages that share a call may sway each other; which ones they are is left to chance, that they do is not.
        return super().labelling() | {"isolated": getattr(self, "batch", 0) == 1}

    def claims(self) -> Prompter | None:
        """What lists the claims of a reference answer, for a judge that needs them; see `claims_task`."""
        return None


def claims_task(case: Case) -> Task:
    """What is asked to list the claims of a query's reference answer."""
    return Task(case.query.text, (), case.query.answer or "")
