"""What a launch may spend on language models, and the caller that keeps to it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from harness.llm.answer_cache import Archive
from harness.llm.caller import Caller
from harness.llm.retry_policy import Patience
from harness.run.pipeline import ARCHIVE
from harness.run.session import Session


def archive_of(session: Session) -> Archive:
    """The answers kept in a session's store."""
    return Archive(session.store / ARCHIVE)


@dataclass(frozen=True)
class Models:
    """What a launch may spend on language models.

    `budget` is in dollars for all of them, `offline` sends nothing. `price` is in dollars per million tokens, of
    prompts and of answers.
    """

    budget: float | None = None
    price: tuple[float, float] | None = None
    offline: bool = False
    patience: Patience = field(default_factory=Patience)

    def caller(self, archive: Archive, tell: Callable[[str], None] = lambda _: None) -> Caller:
        """What makes the calls of one launch; `tell` is given a line where it has to wait."""
        return Caller(
            archive,
            budget=self.budget,
            price=self.price,
            offline=self.offline,
            patience=self.patience,
            tell=tell,
        )
