"""Asking other systems for passages, before they are located: each query once."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

from harness.components.component import identity
from harness.components.roles import Embedder, PassageService, SystemAnswer, SystemHit
from harness.components.roles.passage_retriever import MAX_FAILED
from harness.core.errors import JudgeError
from harness.core.plurals import plural
from harness.core.progress import progress
from harness.core.records import Returned
from harness.core.secrecy import redact, redact_values
from harness.running.stages.embed_queries import EmbedQueries
from harness.running.stages.model_access import ModelAccess
from harness.running.stages.stage import ModelStage, Stage
from harness.running.stages.workspace import Workspace
from harness.storage.digest import digest
from harness.storage.system_answers import Answered


@dataclass(frozen=True, eq=False)
class AskSystem(ModelStage):
    """Asks a system for passages for all queries that it has not answered yet."""

    turn: ClassVar[int] = 45
    system: PassageService
    embedder: Embedder | None
    """That of the queries; None unless the system is asked with vectors."""
    queries: str

    @cached_property
    def address(self) -> str:
        """The system, the queries and their embedder."""
        return f"ask {self.namespace} {self.queries}"

    @cached_property
    def namespace(self) -> str:
        """What the answers are stored under: all settings that may change them."""
        known = identity(self.system)
        return digest([known, identity(self.embedder)] if self.embedder else known)

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The vectors of the queries, if the system is asked with them."""
        return (EmbedQueries(self.embedder, self.queries),) if self.embedder else ()

    @property
    def charges(self) -> bool:
        """Always false: what a system of the user's own costs is not known."""
        return False

    @classmethod
    def fetch(cls, stages: Sequence[tuple[Self, Workspace]], models: ModelAccess) -> None:
        """Ask for the answers that are not stored; each is stored as it comes. Raises ConfigError without a key."""
        for stage, work in stages:
            stage._ask(work)

    def _ask(self, work: Workspace) -> None:
        system, space = self.system, self.namespace
        with work.systems.alone(space):
            texts = list(dict.fromkeys(work.query_texts))
            known = work.systems.get(space, texts)
            missing = [text for text in texts if text not in known]
            with progress(f"ask {system.label}", len(missing), unit="queries") as advance:

                def done(at: int, answer: SystemAnswer) -> None:
                    if answer.failure:
                        failure = Answered(redact(answer.failure), answer.ms, answer.requests)
                        work.systems.put_failure(space, missing[at], failure)
                    else:
                        work.systems.put(space, missing[at], Answered(_json(answer), answer.ms, answer.requests))
                    advance(1)

                if missing:
                    vectors = (
                        work.vectors.embed(self.embedder, missing, queries=True).vectors if self.embedder else None
                    )
                    system.ask(missing, vectors, done)

    def announced(self, work: Workspace) -> str:
        """Return how many queries it would ask, in words."""
        texts = list(dict.fromkeys(work.query_texts))
        missing = len(texts) - len(work.systems.get(self.namespace, texts))
        return f"{self.system.label}: {plural(missing, 'query')} to ask another system; its price is not known"

    def answers(self, work: Workspace) -> list[SystemAnswer]:
        """Return the stored answer to each query. Raises JudgeError if too many are missing."""
        space, texts = self.namespace, work.query_texts
        known, failures = work.systems.get(space, texts), work.systems.failures(space, texts)
        unknown = Answered("not asked yet", math.nan, 0)
        answers = [_answer(known[text]) if text in known else _failure(failures.get(text, unknown)) for text in texts]
        failed = [answer.failure for answer in answers if answer.failure]
        if len(failed) > MAX_FAILED * len(answers):
            message = f"{len(failed)} of {len(answers)} queries have no answer, such as {failed[0]}"
            raise JudgeError(f"retriever {self.system.label}: {message}; the next run asks for these again")
        return answers


def _json(answer: SystemAnswer) -> str:
    hits = [[*hit.passage, hit.score, hit.id] for hit in answer.hits]
    return json.dumps(redact_values(hits), ensure_ascii=False)  # a service may echo the key that it was sent


def _answer(stored: Answered) -> SystemAnswer:
    hits = (SystemHit(Returned(*row[:4]), row[4], row[5]) for row in json.loads(stored.content))
    return SystemAnswer(tuple(hits), ms=stored.ms, requests=stored.requests)


def _failure(stored: Answered) -> SystemAnswer:
    return SystemAnswer(failure=stored.content, ms=stored.ms, requests=stored.requests)
