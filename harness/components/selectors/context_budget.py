"""A token budget derived from a model's context window."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness.components.component import NotNegative, Positive
from harness.components.context_window import Allocation, allocate
from harness.components.roles import Selector
from harness.components.selectors.fitting import Overflow, fitted
from harness.core.errors import ConfigError
from harness.core.records import Hit, Outcome, Query


@dataclass(frozen=True)
class ContextBudget(Selector):
    """Hits in rank order that fit the tokens left for context in a `window`, as computed by `context_window.allocate`.

    The response takes min(2000, window / 8), the history 500 tokens per turn but at most a quarter of the window, and
    the `system` prompt and the `query` take what is set. `overflow` works as in `token_budget`.
    """

    spends_budget: ClassVar[bool] = True

    window: Positive = 128_000
    turns: NotNegative = 0
    system: NotNegative = 500
    query: NotNegative = 500
    overflow: Overflow = "skip"

    @property
    def allocation(self) -> Allocation:
        """The tokens for each part of the window."""
        return allocate(self.window, turns=self.turns, system=self.system, query=self.query)

    def problem(self) -> str | None:
        """An error message if the window leaves nothing for context."""
        try:
            allocate(self.window, turns=self.turns, system=self.system, query=self.query)
        except ConfigError as error:
            return str(error)
        return None

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """Keep the hits that fit the tokens left for context."""
        return fitted(hits, self.allocation.context, self.overflow)
