"""The selector role: one step on the way from retrieved hits to the selected passages."""

import dataclasses
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

from harness.components.component import Component, Positive, declared
from harness.components.roles.retriever import Scale
from harness.core.records import Drop, Floats, Hit, Outcome, Query
from harness.llm.answers import Outcome as Answer
from harness.llm.prompter import Task


class Selector(Component):
    """One step on the way from retrieved hits to the selected passages."""

    role: ClassVar[str] = "selector"
    spends_budget: ClassVar[bool] = False
    """Whether loss attribution counts what this step drops as lost to a budget."""
    needs: ClassVar[tuple[Scale, ...]] = ("unit", "cosine", "raw")
    """The kinds of scores that this step accepts."""

    k: int | None = declared(None)
    """The maximum number of hits that it keeps; None if it has no such setting."""

    @property
    def uses_vectors(self) -> bool:
        """Whether this step reads `chunk.vector`."""
        return False

    @property
    def reranker(self) -> "BaseReranker | None":
        """The step itself if its hits must be rescored before it selects, else None."""
        return None

    def scale(self, before: Scale) -> Scale:
        """The kind of scores after this step, given the kind before it."""
        return before

    @abstractmethod
    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """Return the hits to keep, in rank order, and the dropped ones with reasons; `hits` must not be modified."""


def best_hits_first(hits: Iterable[Hit]) -> list[Hit]:
    """Sort hits by descending score; ties are ordered by document, start and end.

    Scores are rounded to nine decimals first, so that floating-point noise does not change the order.
    """
    return sorted(hits, key=lambda hit: (-round(hit.score, 9), hit.chunk.doc, hit.chunk.start, hit.chunk.end))


@dataclasses.dataclass(frozen=True)
class BaseReranker(Selector):
    """A step that rescores pairs of query and passage and keeps the best `k` (None: all).

    The harness has the pairs scored, each once for all trials, and passes the scores to `select` as those of the hits.
    Derive a new one from Reranker or LlmReranker.
    """

    metered: ClassVar[bool] = False
    """Whether requests go to a server that may charge for them."""

    k: Positive | None = dataclasses.field(default=None, metadata={"post_answer": True}, kw_only=True)

    @property
    def reranker(self) -> "BaseReranker | None":
        """The step itself."""
        return self

    def scale(self, before: Scale) -> Scale:
        """Always `raw`: the range of the new scores is unknown."""
        return "raw"

    def requests(self, texts: int) -> int:
        """The number of requests needed to score `texts` texts for one query."""
        return 1 if texts else 0

    def usd(self, requests: int) -> float | None:
        """The cost of `requests` requests in dollars; None if it is unknown."""
        return 0.0

    def questions(self, query: str, texts: Sequence[str]) -> Sequence[Task]:
        """Return the questions for the step's language model, one per text; none unless it uses one."""
        return ()

    @abstractmethod
    def rescore(self, query: str, texts: Sequence[str], answers: Sequence[Answer]) -> Floats:
        """Return one relevance score per text, (texts,), higher is better; it must not depend on the other texts.

        `answers` has an answer or a failure per question.
        """

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """Rank by score and keep the best `k`; ties keep their order."""
        ranked = sorted(hits, key=lambda hit: -round(hit.score, 9))
        kept = len(ranked) if self.k is None else self.k
        return Outcome(ranked[:kept], [Drop(hit, f"reranked below {kept}") for hit in ranked[kept:]])


@dataclasses.dataclass(frozen=True)
class Reranker(BaseReranker):
    """A step that computes the relevance of passages itself, or asks a reranking server, and keeps the best `k`."""

    @abstractmethod
    def score(self, query: str, texts: Sequence[str]) -> Floats:
        """Return one relevance score per text, (texts,), higher is better; it must not depend on the other texts."""

    def rescore(self, query: str, texts: Sequence[str], answers: Sequence[Answer]) -> Floats:
        """Return what `score` returns."""
        return self.score(query, texts)
