"""A token budget."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness.components.component import Positive
from harness.components.roles import Selector
from harness.components.selectors.fitting import Overflow, fitted
from harness.core.records import Hit, Outcome, Query


@dataclass(frozen=True)
class TokenBudget(Selector):
    """Hits in rank order that fit into `tokens`, contexts included.

    If a hit does not fit, `stop` drops it and all later ones, `skip` drops it and tries the next, and `cut` keeps its
    beginning and drops all later ones.
    """

    spends_budget: ClassVar[bool] = True

    tokens: Positive = 2000
    overflow: Overflow = "skip"

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """Keep the hits that fit the budget."""
        return fitted(hits, self.tokens, self.overflow)
