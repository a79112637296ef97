"""What a launch may spend on language models, and the caller that keeps to it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from harness.llm.answer_cache import AnswerCache
from harness.llm.caller import Caller
from harness.llm.retry_policy import RetryPolicy
from harness.running.pipeline import ARCHIVE
from harness.running.session import Session


def answers_of(session: Session) -> AnswerCache:
    """The answers kept in a session's store."""
    return AnswerCache(session.store / ARCHIVE)


@dataclass(frozen=True)
class Models:
    """What a launch may spend on language models.

    `budget` is in dollars for all of them, `offline` sends nothing. `price` is in dollars per million tokens, of
    prompts and of answers.
    """

    budget: float | None = None
    price: tuple[float, float] | None = None
    offline: bool = False
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)

    def caller(self, answers: AnswerCache, notify: Callable[[str], None] = lambda _: None) -> Caller:
        """What makes the calls of one launch; `notify` is given a line where it has to wait."""
        return Caller(
            answers,
            budget=self.budget,
            price=self.price,
            offline=self.offline,
            retry_policy=self.retry_policy,
            notify=notify,
        )
