"""Asking other systems for passages, before they are located: each query once."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

from harness.components.component import identity
from harness.components.roles import PassageService, SystemAnswer, SystemHit
from harness.components.roles.passage_retriever import MAX_FAILED
from harness.core.errors import JudgeError
from harness.core.progress import progress
from harness.core.records import Returned
from harness.core.secrecy import redact, redact_values
from harness.running.stages.model_access import ModelAccess
from harness.running.stages.stage import ModelStage
from harness.running.stages.workspace import Workspace
from harness.storage.digest import digest
from harness.storage.system_answers import Answered


@dataclass(frozen=True, eq=False)
class AskSystem(ModelStage):
    """Asks a system for passages for all queries that it has not answered yet."""

    turn: ClassVar[int] = 45
    system: PassageService
    queries: str

    @cached_property
    def address(self) -> str:
        """The system and the queries."""
        return f"ask {namespace(self.system)} {self.queries}"

    @property
    def charges(self) -> bool:
        """Always false: what a system of the user's own costs is not known."""
        return False

    @classmethod
    def fetch(cls, stages: Sequence[tuple[Self, Workspace]], models: ModelAccess) -> None:
        """Ask for the answers that are not stored; each is stored as it comes. Raises ConfigError without a key."""
        for stage, work in stages:
            _ask(stage.system, work)


def _ask(system: PassageService, work: Workspace) -> None:
    space = namespace(system)
    with work.systems.alone(space):
        texts = list(dict.fromkeys(work.query_texts))
        known = work.systems.get(space, texts)
        missing = [text for text in texts if text not in known]
        with progress(f"ask {system.name()}", len(missing), unit="queries") as advance:

            def done(at: int, answer: SystemAnswer) -> None:
                if answer.failure:
                    work.systems.put_failure(space, missing[at], redact(answer.failure), answer.ms)
                else:
                    work.systems.put(space, missing[at], Answered(_json(answer), answer.ms))
                advance(1)

            if missing:
                system.ask(missing, done)


def namespace(system: PassageService) -> str:
    """What the answers of a system are stored under: all settings that may change them."""
    return digest(identity(system))


def stored_answers(system: PassageService, work: Workspace) -> list[SystemAnswer]:
    """Return the answer to each query. Raises JudgeError if too many are missing."""
    space, texts = namespace(system), work.query_texts
    known, failures = work.systems.get(space, texts), work.systems.failures(space, texts)
    unknown = Answered("not asked yet", math.nan)
    answers = [
        _answer(known[text])
        if text in known
        else SystemAnswer(failure=failures.get(text, unknown).content, ms=failures.get(text, unknown).ms)
        for text in texts
    ]
    failed = [answer.failure for answer in answers if answer.failure]
    if len(failed) > MAX_FAILED * len(answers):
        message = f"{len(failed)} of {len(answers)} queries have no answer, such as {failed[0]}"
        raise JudgeError(f"retriever {system.name()}: {message}; the next run asks for these again")
    return answers


def _json(answer: SystemAnswer) -> str:
    hits = [[*hit.passage, hit.score, hit.id] for hit in answer.hits]
    return json.dumps(redact_values(hits), ensure_ascii=False)  # a service may echo the key that it was sent


def _answer(stored: Answered) -> SystemAnswer:
    hits = (SystemHit(Returned(*row[:4]), row[4], row[5]) for row in json.loads(stored.content))
    return SystemAnswer(tuple(hits), ms=stored.ms)
