"""What fits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from harness.components.component import Positive
from harness.components.roles import Selector
from harness.components.selectors.fitting import Overflow, fitted
from harness.core.records import Hit, Outcome, Query


@dataclass(frozen=True)
class TokenBudget(Selector):
    """Hits in rank order while they fit `tokens`, contexts included.

    Where one does not fit: `stop` drops it and the rest, `skip` drops it and tries the next, `cut` keeps its beginning
    and drops the rest.
    """

    spends_budget: ClassVar[bool] = True

    tokens: Positive = 2000
    overflow: Overflow = "skip"

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        return fitted(hits, self.tokens, self.overflow)
