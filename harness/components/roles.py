"""The roles that components play in a trial: what each is given, and what it returns."""

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
        """Half-open `(start, end)` offsets into `doc.text`; `doc.tokens` tells token lengths."""


class ScalesChunker(Chunker):
    """Cuts a document several times over; each chunk is tagged by the scale it belongs to."""

    @abstractmethod
    def tilings(self, doc: Document) -> list[Spans]:
        """The spans of each scale, the finest first."""

    def split(self, doc: Document) -> Spans:
        return sorted({span for spans in self.tilings(doc) for span in spans})


class EmbeddingChunker(Chunker):
    """Cuts a document by vectors of its pieces, which the trial's embedder gives: each piece is embedded once."""

    @abstractmethod
    def pieces(self, doc: Document) -> Spans:
        """What is embedded, in order."""

    @abstractmethod
    def join(self, doc: Document, pieces: Spans, vectors: Vectors) -> Spans:
        """The chunks, given the unit vector of each piece, (pieces, dimensions)."""

    def split(self, doc: Document) -> Spans:
        raise TypeError("the pieces are embedded by the harness; see `join`")


class Augmenter(Component):
    """Gives each chunk a context that is indexed with it and never credited as evidence."""

    role: ClassVar[str] = "augmenter"

    @abstractmethod
    def augment(self, doc: Document, spans: Sequence[tuple[int, int]]) -> list[str]:
        """One context per span, in order; the empty string for none."""


class Embedder(Component):
    """Turns texts into vectors."""

    role: ClassVar[str] = "embedder"
    metered: ClassVar[bool] = False
    """Whether texts are paid for; nothing is then embedded just to measure how long it takes."""

    def advice(self) -> str | None:
        """What someone should know who uses these settings; None where all is well."""
        return None

    @property
    def label(self) -> str:
        """The name, and that of its model."""
        return " ".join([self.name(), str(getattr(self, "model", ""))]).strip()

    @property
    def price(self) -> float | None:
        """Dollars per million tokens; None where that is not known."""
        return None if self.metered else 0.0

    @property
    def stated_price(self) -> float | None:
        """The dollars per million tokens that the settings name; None where they name none."""
        return None

    def price_with(self, given: tuple[float, float] | None) -> float | None:
        """Dollars per million tokens: of the settings, else as `given` on the command line (IN,OUT), else as listed."""
        if not self.metered or given is None or self.stated_price is not None:
            return self.price
        return given[0]

    @abstractmethod
    def embed(self, texts: Sequence[str], *, queries: bool = False) -> Embedded:
        """One vector per text, (texts, dimensions) float32, whatever the batch the text travels in."""


Scale = Literal["unit", "cosine", "raw"]
"""What scores are: within 0 and 1; cosines; or of no known range, such as BM25's."""


class Retriever(Component):
    """Ranks chunks for queries. `search` returns at most `depth` chunk numbers per query, best first."""

    role: ClassVar[str] = "retriever"
    uses_vectors: ClassVar[bool] = False
    depth: int

    @property
    def scale(self) -> Scale:
        """What its scores are."""
        return "raw"

    @property
    def parts(self) -> "tuple[Retriever, ...]":
        """The retrievers a fusion draws on; empty for a retriever that searches an index itself."""
        return ()

    def index_settings(self) -> dict[str, Any]:
        """The settings that decide the index; trials that differ only in others share it."""
        return {name: value for name, value in settings(self).items() if name != "depth"}

    def index(self, texts: Sequence[str], corpus: Vectors | None = None) -> Artifact:
        """What `search` needs besides vectors, as arrays; `corpus` as in `search`."""
        return Artifact()

    def exact(self) -> "Retriever | None":
        """For a retriever that only approximates: the one it approximates, which its recall is measured against."""
        return None

    @abstractmethod
    def search(
        self, index: Artifact, corpus: Vectors | None, texts: Sequence[str], vectors: Vectors | None
    ) -> Rankings:
        """Rank chunks for all queries in one call.

        `corpus` holds one vector per chunk and `vectors` one per query, both None unless `uses_vectors`; `texts` are
        the queries.
        """


class Replay(Retriever):
    """A retriever that searches nothing: the rankings are in a file that the data set's manifest names as a `run`."""

    run: str

    @abstractmethod
    def replay(self, path: Path, queries: Sequence[str], first: Mapping[str, int]) -> Rankings:
        """The rankings in the file for the ids of queries, in order; `first` is the first chunk of each document."""

    def search(
        self, index: Artifact, corpus: Vectors | None, texts: Sequence[str], vectors: Vectors | None
    ) -> Rankings:
        raise TypeError("a recorded ranking is not searched; see `replay`")


class FusionContext(NamedTuple):
    """What a fusion may look at besides the rankings: one query, what its `index` made, and the corpus.

    `vector` has shape (dimensions,), `vectors` (chunks, dimensions), both of unit length; None unless the fusion itself
    sets `uses_vectors`.
    """

    query: str
    own: Artifact
    corpus: Corpus
    vector: Vectors | None = None
    vectors: Vectors | None = None


class Fusion(Retriever):
    """A retriever that merges the rankings of its parts, each of which is searched and stored on its own."""

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
        raise TypeError("a fusion is not searched itself; its parts are")


class Selector(Component):
    """One step from retrieved hits to the passages that are kept."""

    role: ClassVar[str] = "selector"
    spends_budget: ClassVar[bool] = False
    """Whether what this step drops is lost to a budget, in the words of the loss ledger."""
    needs: ClassVar[tuple[Scale, ...]] = ("unit", "cosine", "raw")
    """The kinds of scores this step can make sense of."""

    @property
    def uses_vectors(self) -> bool:
        """Whether this step reads `chunk.vector`."""
        return False

    def scale(self, before: Scale) -> Scale:
        """What the scores are after this step."""
        return before

    @abstractmethod
    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        """The hits to keep, in rank order, and those dropped with a reason; the input is left as it is."""


def best_hits_first(hits: Iterable[Hit]) -> list[Hit]:
    """Hits by score, the greatest first, those that tie in the order of document and start.

    Scores are compared to nine decimals, so that the last bits of a sum decide nothing.
    """
    return sorted(hits, key=lambda hit: (-round(hit.score, 9), hit.chunk.doc, hit.chunk.start, hit.chunk.end))


@dataclasses.dataclass(frozen=True)
class Reranker(Selector):
    """A step that scores pairs of query and passage anew and keeps the best `k` (None: all).

    The harness asks for the scores, each pair once for all trials, and hands them in as those of the hits.
    """

    metered: ClassVar[bool] = False
    """Whether requests go to a server that may charge for them."""

    k: Positive | None = dataclasses.field(default=None, metadata={"post_answer": True}, kw_only=True)

    def scale(self, before: Scale) -> Scale:
        return "raw"

    def requests(self, texts: int) -> int:
        """How many requests so many texts of one query take."""
        return 1 if texts else 0

    def usd(self, requests: int) -> float | None:
        """The dollars that `requests` of them cost; None where that is not known."""
        return 0.0

    @abstractmethod
    def score(self, query: str, texts: Sequence[str]) -> Floats:
        """How well each text answers the query, greater being better, (texts,); whatever texts go along."""

    def select(self, query: Query, hits: Sequence[Hit]) -> Outcome:
        # Hits that tie keep the order they came in.
        ranked = sorted(hits, key=lambda hit: -round(hit.score, 9))
        kept = len(ranked) if self.k is None else self.k
        return Outcome(ranked[:kept], [Drop(hit, f"reranked below {kept}") for hit in ranked[kept:]])


def asks_models(step: Selector) -> bool:
    """Whether a step needs what models have to work out about the passages."""
    return step.uses_vectors or isinstance(step, Reranker)


class Judge(Component):
    """Says how good a selection is for a query. A failure to say so is a failure, never a number.

    `measures` are the names of its scores, the headline first.
    """

    role: ClassVar[str] = "judge"
    measures: ClassVar[tuple[str, ...]] = ()
    uses_model: ClassVar[bool] = False
    """Whether a language model is asked: what it says is then uncalibrated until compared with people."""
    divided_by_k: ClassVar[tuple[str, ...]] = ()
    """The measures that divide by the judge's `k` even where fewer passages are selected."""

    def caution(self) -> str:
        """What readers must know of a judge that asks no model; empty where there is nothing to say."""
        return ""

    @abstractmethod
    def tasks(self, case: Case) -> Sequence[Task]:
        """What has to be judged before `score` can tell; empty where it is plain already."""

    @abstractmethod
    def score(self, case: Case, judgments: Mapping[Task, Judgment]) -> Verdict:
        """The scores of one query, given a judgment for each of its tasks."""


def judge_measures(judges: Sequence[Judge]) -> dict[str, tuple[str, Judge, str]]:
    """What judges measure: from a measure's name to the judge's label, the judge, and its own word for it.

    Where a judge occurs again, its measures are numbered as it is: `context_precision_2`. Raises ConfigError where two
    judges measure something of the same name.
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
    """A judge that works its judgments out by itself."""

    @abstractmethod
    def decide(self, tasks: Sequence[Task], embed: Callable[[Sequence[str]], Vectors]) -> Mapping[Task, Judgment]:
        """A judgment for each task; `embed` gives unit vectors of sentences, (texts, dimensions) float32."""


ROLES: Mapping[str, type[Component]] = {
    role.role: role for role in (Chunker, Augmenter, Embedder, Retriever, Selector, Judge)
}
