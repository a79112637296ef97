"""The component roles of a trial: the inputs and outputs of each."""

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from harness.components.component import Component, Positive, settings, step_labels
from harness.components.verdict import Verdict
from harness.core.errors import ConfigError
from harness.core.rankings import Rankings, Row
from harness.core.records import (
    Case,
    Corpus,
    Document,
    Drop,
    Embedded,
    Floats,
    Hit,
    Ints,
    Outcome,
    Query,
    Spans,
    Vectors,
)
from harness.llm.answers import Judgment
from harness.llm.prompter import Task
from harness.storage.store import Artifact


class Chunker(Component):
    """Cuts a document into spans."""

    role: ClassVar[str] = "chunker"

    @abstractmethod
    def split(self, doc: Document) -> Spans:
        """Return half-open `(start, end)` character offsets into `doc.text`; `doc.tokens` has the token positions."""


class ScalesChunker(Chunker):
    """Cuts a document at several scales; each chunk is tagged with its scale."""

    @abstractmethod
    def tilings(self, doc: Document) -> list[Spans]:
        """Return the spans of each scale, finest first."""

    def split(self, doc: Document) -> Spans:
        """Return the distinct spans of all scales, in order."""
        return sorted({span for spans in self.tilings(doc) for span in spans})


class EmbeddingChunker(Chunker):
    """Cuts a document by the vectors of its pieces; the harness embeds each piece once, with the trial's embedder."""

    @abstractmethod
    def pieces(self, doc: Document) -> Spans:
        """Return the spans to embed, in order."""

    @abstractmethod
    def join(self, doc: Document, pieces: Spans, vectors: Vectors) -> Spans:
        """Return the chunks; `vectors` has one unit vector per piece, (pieces, dimensions)."""

    def split(self, doc: Document) -> Spans:
        """Not supported: always raises TypeError."""
        raise TypeError("the harness embeds the pieces; see `join`")


class Augmenter(Component):
    """Adds to each chunk a context that is indexed with it but never counted as evidence."""

    role: ClassVar[str] = "augmenter"

    @abstractmethod
    def augment(self, doc: Document, spans: Sequence[tuple[int, int]]) -> list[str]:
        """Return one context per span, in order; an empty string means no context."""


class Embedder(Component):
    """Turns texts into vectors."""

    role: ClassVar[str] = "embedder"
    metered: ClassVar[bool] = False
    """Whether embedding costs money; if so, the harness embeds nothing only to measure latency."""

    def advice(self) -> str | None:
        """A warning for users of these settings; None if there is nothing to warn about."""
        return None

    @property
    def label(self) -> str:
        """The component name and the model name."""
        return " ".join([self.name(), str(getattr(self, "model", ""))]).strip()

    @property
    def price(self) -> float | None:
        """The price in dollars per million tokens; None if it is unknown."""
        return None if self.metered else 0.0

    @property
    def stated_price(self) -> float | None:
        """The price set in the settings, in dollars per million tokens; None if it is not set."""
        return None

    def price_with(self, given: tuple[float, float] | None) -> float | None:
        """Dollars per million tokens: from the settings, else `given` on the command line (IN,OUT), else listed."""
        if not self.metered or given is None or self.stated_price is not None:
            return self.price
        return given[0]

    @abstractmethod
    def embed(self, texts: Sequence[str], *, queries: bool = False) -> Embedded:
        """Return one vector per text, (texts, dimensions) float32; vectors must not depend on the batch."""


Scale = Literal["unit", "cosine", "raw"]
"""The kind of scores: between 0 and 1; cosines; or of unknown range, such as BM25's."""


class Retriever(Component):
    """Ranks chunks for queries; `search` returns at most `depth` chunk numbers per query, best first."""

    role: ClassVar[str] = "retriever"
    uses_vectors: ClassVar[bool] = False
    depth: int

    @property
    def scale(self) -> Scale:
        """The kind of scores it returns."""
        return "raw"

    @property
    def parts(self) -> "tuple[Retriever, ...]":
        """The retrievers that a fusion merges; empty for a retriever that searches an index itself."""
        return ()

    def index_settings(self) -> dict[str, Any]:
        """The settings that decide the index; trials that differ only in other settings share it."""
        return {name: value for name, value in settings(self).items() if name != "depth"}

    def index(self, texts: Sequence[str], corpus: Vectors | None = None) -> Artifact:
        """Build what `search` needs besides vectors; `texts` are the chunks, `corpus` is as in `search`."""
        return Artifact()

    def exact(self) -> "Retriever | None":
        """For approximate search: the exact retriever that its recall is measured against; else None."""
        return None

    @abstractmethod
    def search(
        self, index: Artifact, corpus: Vectors | None, texts: Sequence[str], vectors: Vectors | None
    ) -> Rankings:
        """Rank chunks for all queries in one call.

        `texts` are the queries. `corpus` has one vector per chunk, (chunks, dimensions), and `vectors` one per query,
        (queries, dimensions); both are None unless `uses_vectors` is true.
        """


class Replay(Retriever):
    """A retriever that reads its rankings from a file, listed as a `run` in the data set's manifest."""

    run: str

    @abstractmethod
    def replay(self, path: Path, queries: Sequence[str], first: Mapping[str, int]) -> Rankings:
        """Read the rankings for query ids, in their order; `first` maps each document id to its first chunk."""

    def search(
        self, index: Artifact, corpus: Vectors | None, texts: Sequence[str], vectors: Vectors | None
    ) -> Rankings:
        """Not supported: always raises TypeError."""
        raise TypeError("a recorded ranking is not searched; see `replay`")


class FusionContext(NamedTuple):
    """The inputs of a fusion besides the rankings: one query, the result of its own `index`, and the corpus.

    `vector` has shape (dimensions,) and `vectors` (chunks, dimensions), both of unit length; both are None unless the
    fusion itself sets `uses_vectors`.
    """

    query: str
    own: Artifact
    corpus: Corpus
    vector: Vectors | None = None
    vectors: Vectors | None = None


class Fusion(Retriever):
    """A retriever that merges the rankings of its parts; each part is searched and stored separately."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Retriever, ...]:
        """The retrievers whose rankings are merged."""

    @abstractmethod
    def fuse(self, rankings: Sequence[tuple[Ints, Floats]], searched: FusionContext) -> Row:
        """Merge the parts' hits for one query, `(chunk numbers, scores)` each, into one ranking, best first."""

    def search(
        self, index: Artifact, corpus: Vectors | None, texts: Sequence[str], vectors: Vectors | None
    ) -> Rankings:
        """Not supported: always raises TypeError."""
        raise TypeError("a fusion is not searched itself; its parts are")


class Selector(Component):
    """One step on the way from retrieved hits to the selected passages."""

    role: ClassVar[str] = "selector"
    spends_budget: ClassVar[bool] = False
    """Whether loss attribution counts what this step drops as lost to a budget."""
    needs: ClassVar[tuple[Scale, ...]] = ("unit", "cosine", "raw")
    """The kinds of scores that this step accepts."""

    @property
    def uses_vectors(self) -> bool:
        """Whether this step reads `chunk.vector`."""
        return False

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
class Reranker(Selector):
    """A step that rescores pairs of query and passage and keeps the best `k` (None: all).

    The harness computes the scores, each pair once for all trials, and passes them to `select` as the hits' scores.
    """

    metered: ClassVar[bool] = False
    """Whether requests go to a server that may charge for them."""

    k: Positive | None = dataclasses.field(default=None, metadata={"post_answer": True}, kw_only=True)

    def scale(self, before: Scale) -> Scale:
        """Always `raw`: the range of the new scores is unknown."""
        return "raw"

    def requests(self, texts: int) -> int:
        """The number of requests needed to score `texts` texts for one query."""
        return 1 if texts else 0

    def usd(self, requests: int) -> float | None:
        """The cost of `requests` requests in dollars; None if it is unknown."""
        return 0.0

    @abstractmethod
    def score(self, query: str, texts: Sequence[str]) -> Floats:
        """Return one relevance score per text, (texts,), higher is better; it must not depend on the other texts."""

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """Rank by score and keep the best `k`; ties keep their order."""
        ranked = sorted(hits, key=lambda hit: -round(hit.score, 9))
        kept = len(ranked) if self.k is None else self.k
        return Outcome(ranked[:kept], [Drop(hit, f"reranked below {kept}") for hit in ranked[kept:]])


def asks_models(step: Selector) -> bool:
    """Whether a step needs model output for the passages: vectors or rerank scores."""
    return step.uses_vectors or isinstance(step, Reranker)


class Judge(Component):
    """Scores how good a selection is for a query. A failed judgment stays a failure and never becomes a number.

    `measures` are the names of its scores, the primary metric first.
    """

    role: ClassVar[str] = "judge"
    measures: ClassVar[tuple[str, ...]] = ()
    uses_model: ClassVar[bool] = False
    """Whether it calls a language model; its scores are uncalibrated until compared with human labels."""
    divided_by_k: ClassVar[tuple[str, ...]] = ()
    """The measures that divide by the judge's `k` even if fewer passages are selected."""

    def caution(self) -> str:
        """A caution for readers of scores from a judge that uses no model; empty if there is none."""
        return ""

    @abstractmethod
    def tasks(self, case: Case) -> Sequence[Task]:
        """The tasks to judge before `score` is called; empty if none is needed."""

    @abstractmethod
    def score(self, case: Case, judgments: Mapping[Task, Judgment]) -> Verdict:
        """Return the scores of one query, given a judgment for each of its tasks."""


def judge_measures(judges: Sequence[Judge]) -> dict[str, tuple[str, Judge, str]]:
    """Map the name of each measure to the judge's label, the judge, and the judge's own name for the measure.

    If a judge occurs again, its measures get the same number as its label: `context_precision_2`. Raises ConfigError
    if two judges have a measure of the same name.
    """
    found: dict[str, tuple[str, Judge, str]] = {}
    for label, judge in zip(step_labels(judges), judges, strict=True):
        for measure in judge.measures:
            name = f"{measure}{label.removeprefix(judge.name())}"
            if name in found:
                raise ConfigError(
                    f"judges: {found[name][0]} and {label} both measure '{name}'; rename one's `measures`"
                )
            found[name] = (label, judge, measure)
    return found


class LocalJudge(Judge):
    """A judge that computes its judgments locally, without a language model server."""

    @abstractmethod
    def decide(self, tasks: Sequence[Task], embed: Callable[[Sequence[str]], Vectors]) -> Mapping[Task, Judgment]:
        """Return a judgment for each task; `embed` returns unit vectors of texts, (texts, dimensions) float32."""


ROLES: Mapping[str, type[Component]] = {
    role.role: role for role in (Chunker, Augmenter, Embedder, Retriever, Selector, Judge)
}
