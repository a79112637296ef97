"""The retriever role for other systems, which return passages of their own instead of chunks of the harness."""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from harness.components.roles.retriever import BaseRetriever, SearchInputs
from harness.core.rankings import Rankings
from harness.core.records import Returned, Vectors

MAX_FAILED = 0.02
"""The fraction of queries that a system may leave without an answer before its means are withheld."""


def finite(value: Any) -> float | None:
    """Return a number that a system returned; None if it is none, or not finite."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # an integer beyond every float
        return None


class SystemHit(NamedTuple):
    """A passage that a system returned, its score (higher is better) and the system's own id of it, if it has any."""

    passage: Returned
    score: float | None = None
    id: str = ""


def rising(hits: Sequence[SystemHit]) -> int | None:
    """Return the index of the first hit with a higher score than the hit before it; None if there is none."""
    for at, (one, other) in enumerate(pairwise(hits), 1):
        if one.score is not None and other.score is not None and other.score > one.score:
            return at
    return None


class SystemAnswer(NamedTuple):
    """What a system returned for a query, best first; `failure` says why it did not answer.

    `ms` is how long the client waited, NaN if that is not known. `requests` is how many it sent for this query, of
    which all but the last have failed, and the last if there is a failure; 0 if that is not known.
    """

    hits: tuple[SystemHit, ...] = ()
    failure: str = ""
    ms: float = math.nan
    requests: int = 0


class Exchange(NamedTuple):
    """One question to a system, for people to look at: what was sent and received, without secrets, and the answer."""

    sent: Mapping[str, Any]
    received: Any
    answer: SystemAnswer


class PassageRetriever(BaseRetriever):
    """A retriever of another system: it cuts the corpus by itself, so that the chunker is `none`.

    The harness locates the passages in the corpus; those that it cannot locate keep their ranks and count as unmapped.
    """

    timed: ClassVar[bool] = False

    @property
    def system(self) -> "PassageRetriever":
        """This retriever."""
        return self

    @property
    def replay(self) -> "PassageReplay | None":
        """This retriever if it reads a recorded run; else None."""
        return None

    @property
    def service(self) -> "PassageService | None":
        """This retriever if it asks the system; else None."""
        return None

    def rank(self, given: SearchInputs) -> Rankings:
        """Return the located passages, at most `depth` for each query."""
        assert given.located is not None
        rows = (given.located.row(query) for query in range(given.located.queries))
        return Rankings.of([(ids[: self.depth], scores[: self.depth]) for ids, scores in rows])


class PassageReplay(PassageRetriever):
    """Reads what a system has returned from a file, listed as a `run` in the data set's manifest."""

    run: str

    @property
    def replay(self) -> "PassageReplay":
        """This retriever."""
        return self

    @property
    def recorded(self) -> str | None:
        """The run's name in the manifest."""
        return self.run

    @abstractmethod
    def answers(self, path: Path, queries: Sequence[str]) -> list[SystemAnswer]:
        """Read the answers to queries, given by id. Raises DataError if the file is malformed."""


class PassageService(PassageRetriever):
    """Asks a system. The harness keeps the answers, so that each query is asked once."""

    @property
    def service(self) -> "PassageService":
        """This retriever."""
        return self

    @property
    def label(self) -> str:
        """What people call the system: the name of the retriever in YAML."""
        return self.name()

    @property
    def asks_by_vector(self) -> bool:
        """Whether it is asked with the vectors of queries too."""
        return False

    @abstractmethod
    def ask(self, queries: Sequence[str], vectors: Vectors | None, done: Callable[[int, SystemAnswer], None]) -> None:
        """Ask for passages for the texts of queries; `done` gets the number of each and the answer, as it comes.

        `vectors` has one per query, (queries, dimensions); None unless `asks_by_vector` is true. Raises ConfigError if
        nothing can be asked, such as without a key.
        """

    @abstractmethod
    def exchange(self, query: str, vector: Vectors | None) -> Exchange:
        """Ask for passages for one query, and return all that was said; `vector`, (dimensions,), is that of the query.

        Raises ConfigError, as `ask` does.
        """
