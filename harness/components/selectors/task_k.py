"""A number of hits chosen by the task and the complexity of the query."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.components.roles import Selector
from harness.components.selectors.cutting import cut
from harness.components.selectors.wording import mentions
from harness.core.records import Hit, Outcome, Query

BASE = {"qa": 5, "summarization": 15, "reasoning": 30, "code": 5}
OTHER = 10
FACTOR = {"simple": 0.6, "moderate": 1.0, "complex": 1.8}

_CODE = ("function", "class", "method", "import", "export")
_SEVERAL = ("and", "also", "additionally")
_LONG = 15


@dataclass(frozen=True)
class TaskK(Selector):
    """The first base x factor hits: a base by task (qa 5, summarization 15, reasoning 30, code 5, else 10), a factor by
    complexity (simple 0.6, moderate 1.0, complex 1.8).

    Both are read from the query's metadata (`task`, `complexity`) if they are set there. Otherwise the task is code for
    a query with "function", "class", "method", "import" or "export", else qa; the complexity is complex with "and",
    "also" or "additionally", moderate with more than 15 words, else simple. Only whole words match; halves round up.
    """

    def hits_for(self, query: Query) -> tuple[int, str]:
        """The number of hits, and the complexity and task that it follows from."""
        text = query.text
        task = query.metadata.get("task") or ("code" if mentions(text, _CODE) else "qa")
        found = "complex" if mentions(text, _SEVERAL) else "moderate" if len(text.split()) > _LONG else "simple"
        complexity = query.metadata.get("complexity") or found
        factor = FACTOR.get(str(complexity), 1.0)
        return math.floor(BASE.get(str(task), OTHER) * factor + 0.5), f"{complexity} {task}"

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """Keep the first `k` hits for the query's task and complexity."""
        k, why = self.hits_for(query)
        return cut(hits, k, f"{why}: below rank {k}")
