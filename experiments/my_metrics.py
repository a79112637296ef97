"""A metric of one's own, named in `own_metric.yaml` as `my_metrics.py:NuggetRecall@5`."""

import re
from dataclasses import dataclass

from harness.components import Metric, Selected


@dataclass(frozen=True)
class NuggetRecall(Metric):
    """The fraction of a query's nuggets that the passages hold.

    Nuggets are the texts in the query's metadata (`nuggets`), else the sentences of its answer. A nugget is held if at
    least the fraction `overlap` of its words occur in one passage.
    """

    overlap: float = 0.6

    def value(self, selected: Selected) -> float | None:
        query = selected.query
        nuggets = query.metadata.get("nuggets") or re.findall(r"[^.!?]+[.!?]?", query.answer or "")
        needed = [words for words in map(_words, nuggets) if words]
        if not needed:
            return None
        passages = [_words(passage.text) for passage in selected.passages]
        held = [any(len(words & one) >= self.overlap * len(words) for one in passages) for words in needed]
        return sum(held) / len(held)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))
