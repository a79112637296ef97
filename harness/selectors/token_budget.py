"""What fits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from harness.component import Positive, Selector
from harness.model import Drop, Hit, Outcome, Query


@dataclass(frozen=True)
class TokenBudget(Selector):
    """Hits in rank order while they fit `tokens`, contexts included.

    Where one does not fit: `stop` drops it and the rest, `skip` drops it and tries the next, `cut` keeps its beginning
    and drops the rest.
    """

    spends_budget: ClassVar[bool] = True

    tokens: Positive = 2000
    overflow: Literal["stop", "skip", "cut"] = "skip"

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        kept: list[Hit] = []
        dropped: list[Drop] = []
        left = self.tokens
        full = False
        for hit in hits:
            if full or hit.chunk.tokens > left:
                part = hit.chunk.cut(left) if self.overflow == "cut" and not full else None
                full = full or self.overflow != "skip"
                if part is None:
                    dropped.append(Drop(hit, f"{hit.chunk.tokens} tokens, {left} left"))
                    continue
                hit = hit._replace(chunk=part)
            kept.append(hit)
            left -= hit.chunk.tokens
        return Outcome(kept, dropped)
