"""What the retrievers of vector databases share: hits as rankings, and failures in one line."""

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

import numpy as np

from harness.components.retrievers.dense import Dense
from harness.components.retrievers.existing_index import SharedDatabase
from harness.components.roles import Scale
from harness.components.text_analysis import Analyzer
from harness.core.errors import HarnessError
from harness.core.rankings import Rankings, best_first, unit_rows
from harness.core.records import Floats, Ints, Vectors
from harness.core.secrecy import redact

QUERIES = 64
"""Queries sent to a database at once."""

_ANALYZE = Analyzer("porter", "lucene")

_DETAILS = re.compile(
    r"[,:;]? *(?:Caused by|Backtrace|Traceback|source:|Detail:|LINE \d|/rustc/|/\S{1,200}\.rs:|\{).*", re.DOTALL
)


def similar(vectors: Vectors | None, similarity: str) -> Vectors:
    """Vectors whose inner products are the similarities: for cosines, they have unit length. Raises TypeError if None.

    A database asked for cosines itself would leave out vectors of zeros.
    """
    if vectors is None:
        raise TypeError("a search by vectors needs vectors")
    return unit_rows(vectors) if similarity == "cosine" else np.ascontiguousarray(vectors, np.float32)


def rankings(found: Sequence[tuple[Ints, Floats]], depth: int, decimals: int) -> Rankings:
    """Rankings of the hits of each query, at most `depth` deep, with ties in chunk order."""
    return Rankings.of([best_first(ids, scores, depth, decimals) for ids, scores in found])


def analyzed(text: str) -> str:
    """The words of a text as `bm25` counts them, separated by spaces, for a database that splits texts at spaces."""
    # The stemmer leaves nothing of the word `s`, which counts as a word nevertheless.
    return " ".join(word or "_" for word in _ANALYZE(text))


def said(error: Exception) -> str:
    """The beginning of an error's message, without the details and secrets that may follow."""
    words = _DETAILS.sub("", " ".join(str(error)[:4000].split()))[:200].rstrip(" .,:;")
    return redact(words) or type(error).__name__


@contextlib.contextmanager
def one_line(
    database: str, place: str, *kinds: type[Exception], permanent: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Turn an error of a database, of one of the `kinds`, into a HarnessError of one line.

    Those that are `permanent` will be the same in the next run.
    """
    try:
        yield
    except HarnessError:
        raise
    except kinds as error:
        message = f"retriever {database}: {redact(place)} cannot be used ({said(error)})"
        advice = "" if isinstance(error, permanent) else ", run again to go on"
        raise HarnessError(f"{message}; nothing finished is lost{advice}") from error


class VectorDatabase(SharedDatabase):
    """A retriever that has a database search by vectors."""

    decides: ClassVar[bool] = False
    """Whether an index that exists already has a similarity of its own, whatever the setting."""
    similarity: Literal["cosine", "dot"]

    @property
    def compares_vectors(self) -> bool:
        """Always true."""
        return True

    @property
    def scale(self) -> Scale:
        """`cosine`, or `raw` for inner products, for scores of words, and if an existing index decides itself."""
        cosines = self.compares_vectors and self.similarity == "cosine" and not (self.existing and self.decides)
        return "cosine" if cosines else "raw"

    def exact(self) -> Dense | None:
        """Exact search over the same vectors; None for full text, and for an index whose vectors are not known."""
        return Dense(self.depth, self.similarity) if self.uses_vectors else None


class DatabaseSearch(VectorDatabase):
    """A retriever whose settings say whether a database searches by vectors, by words, or by both (`hybrid`)."""

    search: str
    analyzer: str

    @property
    def compares_vectors(self) -> bool:
        """Whether it searches by vectors."""
        return self.search != "full_text"

    @property
    def scale(self) -> Scale:
        """`cosine`, or `raw` for inner products, and wherever words count."""
        return "raw" if self.search == "hybrid" else super().scale

    def exact(self) -> Dense | None:
        """Exact search over the same vectors; None if words count."""
        return None if self.search == "hybrid" else super().exact()

    def words(self, text: str) -> str:
        """Return what the database indexes of a text, or searches: the words of `bm25`, or the text itself."""
        return analyzed(text) if self.analyzer == "harness" else text
