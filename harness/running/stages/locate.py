"""The locate stage: the passages that another system returned, as spans of the corpus."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from harness.components.component import identity
from harness.components.roles import BaseRetriever, Embedder, PassageRetriever, SystemAnswer
from harness.core.rankings import Rankings
from harness.core.records import Document, Floats, Ints, Query, Returned, Span, TokenMap
from harness.core.timing import TIMED_QUERIES
from harness.data.corpus import Documents, Extended
from harness.data.location import FORMAT, Located, locate
from harness.data.manifest import Copies
from harness.evaluation.metrics.intervals import overlap
from harness.running.stages.ask_system import AskSystem
from harness.running.stages.ranking_checks import read_rankings
from harness.running.stages.spans import SpansStage
from harness.running.stages.stage import Stage
from harness.running.stages.tokenize import Tokenize, TokenMaps
from harness.running.stages.workspace import Workspace
from harness.storage.digest import digest
from harness.storage.store import Artifact, Key

UNMAPPED, REPEATED = "unmapped:", "repeated:"
"""What the ids of passages begin with that are not in the corpus, or that were returned again for the same query."""

_NO_TEXT = "(offsets beyond the document, without a text)"


@dataclass(frozen=True, eq=False)
class Locate(SpansStage):
    """Locates the passages of another system in the corpus; see `harness.data.location`.

    `embedder` is None unless the system is asked with vectors of queries. `queries` is the SHA-256 of the query set,
    `run` that of the recorded run that the retriever reads, if it reads one.
    A passage that is in several places counts at the one that has most of the query's evidence.
    """

    tokens: Tokenize
    retriever: BaseRetriever
    embedder: Embedder | None
    queries: str
    run: str | None
    copies: Copies
    parts: int = 1

    @cached_property
    def key(self) -> Key:
        """The corpus, the queries with their evidence, and the retriever."""
        return {
            "stage": "locate",
            "format": FORMAT,
            "corpus": self.tokens.address,
            "queries": self.queries,
            "copies": self.copies,
            "retriever": identity(self.retriever),
            "run": self.run,
            **({"embedder": identity(self.embedder)} if self.embedder else {}),
        }

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The tokens, and what a service is asked."""
        return (self.tokens, *((self.asking,) if self.asking else ()))

    @property
    def asking(self) -> AskSystem | None:
        """What asks the system, if it is a service."""
        service = self.system.service
        return AskSystem(service, self.embedder, self.queries) if service else None

    @property
    def system(self) -> PassageRetriever:
        """The system that the retriever asks, or whose run it reads."""
        system: PassageRetriever = self.retriever.system
        return system

    @property
    def reads_answers(self) -> bool:
        """Whether a service was asked: its answers are kept on the launching machine."""
        return self.asking is not None

    @property
    def complete(self) -> bool:
        """Always false: nobody knows what else the system has."""
        return False

    @property
    def uses_models(self) -> bool:
        """Always false."""
        return False

    def build(self, work: Workspace) -> Artifact:
        """Return the distinct spans, as chunks are stored, and the arrays of `Rankings` over them.

        `ms`, (queries,), is how long the client waited. As data: `others` has id and text of what is not in the corpus,
        in the order of these documents, which come after those of the corpus; `how` counts how passages were located,
        `requests` has the number of requests and of those that failed, and `failed` says by the number of a query why
        the system did not answer it. Raises JudgeError if a service left too many queries without an answer.
        """
        answers = _answers(self, work)
        passages = list(dict.fromkeys(hit.passage for answer in answers for hit in answer.hits))
        located = dict(zip(passages, locate(passages, work.data.documents), strict=True))
        others: dict[str, str] = {}
        rows = [_row(*pair, located, others, work) for pair in zip(work.queries, answers, strict=True)]
        number = {name: len(work.data.documents) + at for at, name in enumerate(others)}
        known = work.data.number
        numbered = [
            {(number.get(span.doc) or known[span.doc], span.start, span.end): score for span, score in row.items()}
            for row in rows
        ]
        table = sorted({span for row in numbered for span in row})
        at = {span: place for place, span in enumerate(table)}
        ranked = Rankings.of(
            [
                (np.array([at[span] for span in row], np.int64), np.array(list(row.values()), np.float64))
                for row in numbered
            ]
        )
        columns = np.array(table, np.int64).reshape(-1, 3).T
        arrays = dict(zip(("doc", "start", "end"), columns, strict=True))
        arrays |= {
            "tokens": _tokens(table, numbered, answers, self.tokens.maps(work), work),
            "scale": np.zeros(len(table), np.int64),
        }
        facts = {
            "others": list(others.items()),
            "how": Counter(located[hit.passage].how or "unmapped" for answer in answers for hit in answer.hits),
            "requests": [sum(answer.requests for answer in answers), sum(map(_failed_requests, answers))],
            "failed": {str(query): answer.failure for query, answer in enumerate(answers) if answer.failure},
        }
        return Artifact({**arrays, **ranked._asdict(), "ms": np.array([answer.ms for answer in answers])}, facts)

    def others(self, work: Workspace) -> list[Document]:
        """Return what the system returned that is not in the corpus, or not once more, as documents."""

        def made() -> list[Document]:
            return [Document(name, text) for name, text in self.read(work).data["others"]]

        others = work.kept("returned", self.address, made)
        work.returned |= {doc.id: doc for doc in others}
        return others

    def documents(self, work: Workspace) -> Documents:
        """Return the corpus, followed by the passages that are not in it."""
        others = self.others(work)
        return Extended(work.data.documents, others) if others else work.data.documents

    def maps(self, work: Workspace) -> TokenMaps:
        """Return the token maps of these documents."""
        maps = self.tokens.maps(work)
        return ExtendedMaps(maps, self.documents(work), work) if self.others(work) else maps

    def failed(self, work: Workspace) -> list[int]:
        """Return the numbers of the queries that the system did not answer."""
        return [int(query) for query in self.read(work).data["failed"]]

    def facts(self, work: Workspace) -> dict[str, float]:
        """Return the fraction of passages that are not in the corpus, the number of queries without an answer, and
        percentiles of how long the client waited.
        """
        how, ms = self.read(work).data["how"], self.read(work).arrays["ms"]
        known = ms[~np.isnan(ms)]
        waits = {f"retrieve_p{at}_ms": float(np.percentile(known, at)) for at in (50, 95, 99) if len(known)}
        share = how.get("unmapped", 0) / max(1, sum(how.values()))
        sent, failed = self.read(work).data["requests"]
        errors = {"error_rate": failed / sent} if sent else {}
        return {"unmapped": share, "unanswered": len(self.failed(work)), **errors, **waits}

    def waited(self, work: Workspace) -> Floats:
        """Return how long the client waited for each of the first queries, NaN where that is not known; or nothing."""
        ms = self.read(work).arrays["ms"][:TIMED_QUERIES]
        return np.zeros(0) if np.isnan(ms).all() else np.array(ms)

    def located(self, work: Workspace) -> Rankings:
        """Return what the system has returned for each query, all of it."""
        return read_rankings(self.read(work))


def _failed_requests(answer: SystemAnswer) -> int:
    return answer.requests if answer.failure else max(0, answer.requests - 1)


def _answers(stage: Locate, work: Workspace) -> list[SystemAnswer]:
    if stage.asking is not None:
        return stage.asking.answers(work)
    replay = stage.system.replay
    assert replay is not None
    return replay.answers(work.run_file(replay.run), [query.id for query in work.queries])


def _tokens(
    table: Sequence[tuple[int, int, int]],
    rows: Sequence[Mapping[tuple[int, int, int], float]],
    answers: Sequence[SystemAnswer],
    maps: TokenMaps,
    work: Workspace,
) -> Ints:
    """The tokens of each span: those of the text that the system returned, which may be more than is in the corpus.

    Of several texts for one span, the longest counts; without a text, the span itself.
    """
    counts: dict[tuple[int, int, int], int] = {}
    known: dict[str, int] = {}
    for row, answer in zip(rows, answers, strict=True):
        for span, hit in zip(row, answer.hits, strict=True):
            text = hit.passage.text.strip()
            if text and text not in known:
                known[text] = work.tokenizer.count(text)
            counts[span] = max(counts.get(span, 0), known.get(text, 0))
    first = len(work.data.documents)
    found = (counts[span] or (maps.of(span[0]).count(*span[1:]) if span[0] < first else 0) for span in table)
    return np.fromiter(found, np.int64, len(table))


def _row(
    query: Query,
    answer: SystemAnswer,
    located: Mapping[Returned, Located],
    others: dict[str, str],
    work: Workspace,
) -> dict[Span, float]:
    """The spans that were returned for a query with their scores; `others` gets what has no span of the corpus.

    A passage that is returned again is at its next place. If it has no more, it keeps its rank, but does not count.
    """
    row: dict[Span, float] = {}
    for rank, hit in enumerate(answer.hits, 1):
        places = _by_evidence(located[hit.passage].places, query)
        span = next((place for place in places if place not in row), None)
        if span is None:
            text = hit.passage.text.strip() or (work.text(*places[0]) if places else _NO_TEXT)
            name = f"{REPEATED if places else UNMAPPED}{digest(text)[:16]}"
            names = (name, *(f"{name}:{number}" for number in range(2, rank + 1)))
            span = next(one for one in (Span(name, 0, len(text)) for name in names) if one not in row)
            others[span.doc] = text
        row[span] = 1 / rank if hit.score is None else hit.score
    return row


def _by_evidence(places: Sequence[Span], query: Query) -> list[Span]:
    """The places of a passage, those with most of the query's evidence first."""
    evidence = [place for item in query.evidence for place in item.places] if len(places) > 1 else []

    def shared(place: Span) -> int:
        return sum(overlap(place[1:], [other[1:]]) for other in evidence if other.doc == place.doc)

    return sorted(places, key=shared, reverse=True)  # stable: those that are equal stay in corpus order


class ExtendedMaps(TokenMaps):
    """The token maps of the corpus and of documents after it."""

    def __init__(self, corpus: TokenMaps, documents: Documents, work: Workspace) -> None:
        super().__init__(documents, corpus.starts, corpus.offsets)
        self._first, self._tokenizer = len(corpus), work.tokenizer

    def of(self, number: int) -> TokenMap:
        """Return the token map of document `number`."""
        if number < self._first:
            return super().of(number)
        return TokenMap(self._tokenizer.starts(self._documents.text(number)))
