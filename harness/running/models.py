"""The limits on what a launch spends on language models, and the caller that enforces them."""

from collections.abc import Callable
from dataclasses import dataclass, field

from harness.llm.answer_cache import AnswerCache
from harness.llm.caller import Caller
from harness.llm.retry_policy import RetryPolicy
from harness.running.session import Session
from harness.running.stages.workspace import ANSWERS


def answers_of(session: Session) -> AnswerCache:
    """Return the answer cache in a session's store."""
    return AnswerCache(session.store / ANSWERS)


@dataclass(frozen=True)
class Models:
    """The limits on what a launch spends on language models.

    `budget` is the total for all models, in dollars. With `offline`, nothing is sent. `price` is in dollars per million
    tokens, of prompts and of answers.
    """

    budget: float | None = None
    price: tuple[float, float] | None = None
    offline: bool = False
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)

    def caller(self, answers: AnswerCache, notify: Callable[[str], None] = lambda _: None) -> Caller:
        """Return the caller for one launch; `notify` receives a line whenever the caller has to wait."""
        return Caller(
            answers,
            budget=self.budget,
            price=self.price,
            offline=self.offline,
            retry_policy=self.retry_policy,
            notify=notify,
        )
