"""Two small questions for tests of judges: with three passages each, put to a judge through the real machinery."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.components.verdict import Verdict
from harness.core.records import Case, Chunk, Query
from harness.llm import AnswerCache, BatchRunner, Caller, Failure, Judgment, RetryPolicy, Task, stored
from judges import ContextPrecision

QUICK = RetryPolicy(attempts=3, turns=6, pause=0.01, longest=0.02)


def case(question: str, texts: Sequence[str], answer: str | None = None) -> Case:
    """A query with passages, of a document each."""
    passages = tuple(Chunk(f"d{at}", 0, len(text), text) for at, text in enumerate(texts))
    return Case(Query(question, question, answer=answer), (), passages)


VICTIM = case("Which tree is oldest?", ["Pine one.", "Pine two.", "Pine three."])
BYSTANDER = case("How deep is the lake?", ["Deep one.", "Deep two.", "Deep three."])


@dataclass
class Outcome:
    """What came of putting cases to a judge."""

    judge: Any
    judgments: Mapping[Task, Judgment]
    caller: Caller
    fatal: Exception | None = None

    def verdict(self, about: Case) -> Verdict:
        return self.judge.score(about, self.judgments)

    def kinds(self, about: Case) -> list[str]:
        """`label` or the kind of failure, passage by passage."""
        judged = [self.judgments[task] for task in self.judge.tasks(about)]
        return [one.kind if isinstance(one, Failure) else "label" for one in judged]


def put(
    cases: Sequence[Case], store: Path, judge: Any = None, retry_policy: RetryPolicy = QUICK, **options: Any
) -> Outcome:
    """Ask about the cases; `options` are those of Caller.

    The deadline is far away: on a busy machine an answer may take seconds, and only what never ends must run into it.
    """
    judge = judge or ContextPrecision("some-model", timeout=60.0)
    answers = AnswerCache(store / "answers.sqlite")
    caller = Caller(answers, retry_policy=retry_policy, **options)
    tasks = [task for one in cases for task in judge.tasks(one)]
    fatal = None
    try:
        BatchRunner(caller).ask([(judge, tasks)])
    except Exception as error:
        fatal = error
    return Outcome(judge, stored(answers, judge, tasks), caller, fatal)
